/** textlint rules over paragraphs of Markdown, comments and messages. */
import type { AnyTxtNode } from '@textlint/ast-node-types';
import type { TextlintRuleModule } from '@textlint/types';
import { glossary, maxWords, openings, titleOpenings, type Term } from './glossary.ts';
import { testTitle } from './source-plugin.ts';

const spaces = (text: string): string => text.replaceAll(/[^\n]/g, ' ');

/**
 * Returns the text with code, link targets, quoted text and comment marks blanked. Its length stays the same, so that
 * positions stay valid.
 */
const masked = (raw: string): string =>
  raw
    .replaceAll(/`[^`]*`|“[^”]*”|"[^"\n]*"|\$\{[^}]*\}|\]\([^)]*\)|<?https?:\S+|\{@\w+[^}]*\}/g, (code) =>
      code.replaceAll(/[^\n]/g, 'X'),
    )
    .replaceAll(/^\s*(?:\/\*\*?|\*\/|\*|\/\/+|#+)(?=\s|$)|\*\/$/gm, spaces);

/** Matches sentences. A sentence ends before a capital letter, or with its paragraph, list item or table cell. */
const sentences = /[^\s|](?:(?![.!?:](?:\s+[A-Z]|\s*$|\n\s)|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|\|)[^])*[.!?]?/g;

const countWords = (text: string): number => text.split(/\s+/).filter((word) => /[a-z]/i.test(word)).length;

const rule: TextlintRuleModule = (context) => {
  const { Syntax, RuleError, report, getSource, locator } = context;
  const check = (node: AnyTxtNode, excluded: readonly Term[] = openings): void => {
    const text = masked(getSource(node) ?? '');
    const complain = ({ pattern, instead }: Term, within: string, offset: number): void => {
      for (const { 0: found, index } of within.matchAll(pattern))
        report(node, new RuleError(`“${found}”: write ${instead}`, { padding: locator.at(offset + index) }));
    };
    for (const term of glossary) complain(term, text, 0);
    for (const { 0: sentence, index } of text.matchAll(sentences)) {
      if (!/\?\s*$/.test(sentence)) for (const opening of excluded) complain(opening, sentence, index);
      const words = Math.max(...sentence.split(/[;:]\s/).map(countWords));
      if (words > maxWords)
        report(
          node,
          new RuleError(`a sentence of ${words} words: write at most ${maxWords}`, { padding: locator.at(index) }),
        );
    }
  };
  return {
    [Syntax.Paragraph]: (node) => check(node),
    [Syntax.Header]: (node) => check(node, []),
    [testTitle]: (node: AnyTxtNode) => check(node, titleOpenings),
    [Syntax.TableCell]: (node) => check(node),
  };
};

export default rule;
