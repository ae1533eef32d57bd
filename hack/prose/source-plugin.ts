/** textlint plugins that show comments and strings of source files as paragraphs. */
import type { TextlintPluginCreator } from '@textlint/types';
import { parseSync, Visitor } from 'oxc-parser';

interface Span {
  readonly start: number;
  readonly end: number;
  readonly isTestTitle?: boolean;
}

/** Type of the nodes of test titles. */
export const testTitle = 'TestTitle';

type Paragraphs = (text: string, file: string) => readonly Span[];

/**
 * Returns whether a string is a message or a title. A message or title has at least three words. Keys, paths and
 * queries have fewer words, or other characters.
 */
const isProse = (text: string): boolean => /^[`'"]?[A-Za-z%$][^\n]* [^\n]* /.test(text);
const testFunctions = new Set(['test', 'describe']);

const typescript: Paragraphs = (text, file) => {
  const { program, comments } = parseSync(file, text);
  const spans: Span[] = [];
  const isTest = file.endsWith('.test.ts');
  const strings: Span[] = [];
  const add = ({ start, end }: Span, isTestTitle = false): void => {
    if (isProse(text.slice(start, end))) strings.push({ start: start + 1, end: end - 1, isTestTitle });
  };
  new Visitor({
    Literal: (node) => {
      if (typeof node.value === 'string' && !isTest) add(node);
    },
    TemplateLiteral: (node) => {
      if (!isTest) add(node);
    },
    CallExpression: ({ callee, arguments: [title] }) => {
      const name = calledName(callee);
      if (isTest && title !== undefined && testFunctions.has(name)) add(title, name === 'test');
    },
  }).visit(program);
  spans.push(...joined(text, comments), ...strings);
  return spans.toSorted((a, b) => a.start - b.start);
};

/** Returns the name of the called function, such as `test` for `test(…)` and `test.each(…)(…)`. */
function calledName(callee: { readonly type: string }): string {
  const node = callee as {
    readonly type: string;
    readonly name?: string;
    readonly callee?: { readonly type: string };
    readonly object?: { readonly type: string };
  };
  if (node.type === 'Identifier') return node.name ?? '';
  const inner = node.callee ?? node.object;
  return inner === undefined ? '' : calledName(inner);
}

/** Returns the spans of the comments. Consecutive line comments are one paragraph. */
function joined(text: string, comments: readonly (Span & { readonly type: string })[]): Span[] {
  const spans: { start: number; end: number }[] = [];
  for (const { type, start, end } of comments) {
    const last = spans.at(-1);
    if (
      type === 'Line' &&
      last !== undefined &&
      /^\s*$/.test(text.slice(last.end, start)) &&
      text.startsWith('//', last.start)
    )
      last.end = end;
    else spans.push({ start, end });
  }
  return spans;
}

/** Comments of Makefiles, Dockerfiles and shell scripts. */
const hashComments: Paragraphs = (text) => {
  const spans: { start: number; end: number }[] = [];
  for (const { 0: line, index } of text.matchAll(/(?:^|(?<=\s))#+ .*/gm)) {
    const last = spans.at(-1);
    if (last !== undefined && /^\n[ \t]*$/.test(text.slice(last.end, index))) last.end = index + line.length;
    else spans.push({ start: index, end: index + line.length });
  }
  return spans;
};

/** Comments of YAML files, and descriptions and messages in these files, such as those of CustomResourceDefinitions. */
const yaml: Paragraphs = (text, file) => {
  const texts = text.matchAll(/^( *)(?:- )?(?:description|message): (?:>-(?:\n\1 {2,}.*)+|(?!>).+)/gm);
  const spans = [...texts].map(({ 0: found, index }) => ({
    start: index + (/: (?:>-)?/.exec(found)?.[0].length ?? 0) + found.indexOf(': '),
    end: index + found.length,
  }));
  return [...hashComments(text, file), ...spans].toSorted((a, b) => a.start - b.start);
};

function plugin(extensions: string[], paragraphs: Paragraphs): TextlintPluginCreator {
  return {
    Processor: class {
      availableExtensions(): string[] {
        return extensions;
      }
      processor() {
        return {
          preProcess: (text: string, file = '') => documentOf(text, paragraphs(text, file)),
          postProcess: (messages: unknown[], file = '') => ({ messages, filePath: file }),
        };
      }
    },
  } as unknown as TextlintPluginCreator;
}

function documentOf(text: string, spans: readonly Span[]) {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const position = (offset: number) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: offset - (starts[low] as number) };
  };
  const node = (type: string, { start, end }: Span, rest: object) => ({
    type,
    raw: text.slice(start, end),
    range: [start, end],
    loc: { start: position(start), end: position(end) },
    ...rest,
  });
  return node(
    'Document',
    { start: 0, end: text.length },
    {
      children: spans.map((span) => node(span.isTestTitle === true ? testTitle : 'Paragraph', span, { children: [] })),
    },
  );
}

export const typescriptPlugin = plugin(['.ts'], typescript);
export const yamlPlugin = plugin(['.yaml'], yaml);
export const hashCommentPlugin = plugin(['.tpl', '.sh', 'Makefile', 'Dockerfile'], hashComments);
