/** Reads YAML. The library quotes the text in its messages, and the text may hold a secret: these messages have the place and the kind. */
import { LineCounter, parseDocument, visit, type Document, type ErrorCode, stringify } from 'yaml';

/** For people to read, and for programs: lines are not folded. */
export const toYAML = (value: unknown): string => stringify(value, { lineWidth: 0 });

interface YAMLProblem {
  /** Such as `line 3, column 9`. */
  readonly place: string;
  /** Follows the place. */
  readonly message: string;
}

type YAML =
  { readonly ok: true; readonly content: unknown } | { readonly ok: false; readonly problems: readonly YAMLProblem[] };

const maxAliases = 100;

const messages: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias has an anchor or a tag',
  BAD_ALIAS: 'an alias is malformed',
  BAD_COLLECTION_TYPE: 'a tag does not fit its mapping or list',
  BAD_DIRECTIVE: 'a directive is malformed',
  BAD_DQ_ESCAPE: 'unknown escape sequence between double quotes',
  BAD_INDENT: 'wrong indentation',
  BAD_PROP_ORDER: 'an anchor or a tag is in the wrong place',
  BAD_SCALAR_START: 'plain text begins with a reserved character: put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a mapping begins on the line of another key: put the text in quotes',
  BLOCK_IN_FLOW: 'a block is not allowed between brackets',
  DUPLICATE_KEY: 'the key is there twice',
  IMPOSSIBLE: 'it cannot be read',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  MISSING_CHAR: 'a quote, bracket, colon, comma or space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key has more than one line',
  MULTIPLE_ANCHORS: 'a value has two anchors',
  MULTIPLE_DOCS: 'it has more than one document',
  MULTIPLE_TAGS: 'a value has two tags',
  NON_STRING_KEY: 'a key is not text',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  TAB_AS_INDENT: 'a tab is not allowed as indentation',
  TAG_RESOLVE_FAILED: 'a tag does not fit its value',
  UNEXPECTED_TOKEN: 'something follows the end of a value: put the text in quotes',
};

/** Returns all problems at once, and throws nothing. */
export function readYAML(text: string): YAML {
  const lines = new LineCounter();
  const placeOf = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const fail = (offset: number, message: string): YAML => ({
    ok: false,
    problems: [{ place: placeOf(offset), message }],
  });
  try {
    const options = { lineCounter: lines, uniqueKeys: true, stringKeys: true, prettyErrors: false };
    const document = parseDocument(text, options);
    if (document.errors.length > 0)
      return {
        ok: false,
        problems: document.errors.map(({ code, pos }) => ({ place: placeOf(pos[0]), message: messages[code] })),
      };
    const unresolved = unresolvedAlias(document);
    if (unresolved !== undefined) return fail(unresolved, 'an alias has no anchor before it: put the text in quotes');
    return { ok: true, content: document.toJS({ maxAliasCount: maxAliases }) };
  } catch {
    return fail(0, `it is nested too deeply, or has more than ${maxAliases} aliases`);
  }
}

/** The offset of the first alias whose anchor is not before it. */
function unresolvedAlias(document: Document): number | undefined {
  const anchors = new Set<string>();
  let found: number | undefined;
  visit(document, {
    Alias: (_, alias) => {
      if (anchors.has(alias.source)) return undefined;
      found = alias.range?.[0] ?? 0;
      return visit.BREAK;
    },
    Value: (_, { anchor }) => {
      if (anchor !== undefined) anchors.add(anchor);
    },
  });
  return found;
}
