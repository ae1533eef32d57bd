/**
 * Reads YAML. The library's messages quote the text, which may contain a secret. The messages of this module contain
 * only a position and the kind of problem.
 */
import { CST, Lexer, LineCounter, parseDocument, visit, type Document, type ErrorCode, stringify } from 'yaml';

/** Formats a value as YAML without folding lines. */
export const toYAML = (value: unknown): string => stringify(value, { lineWidth: 0 });

export interface YAMLProblem {
  /** Position, such as `line 3, column 9`. */
  readonly position: string;
  /** Text after the position. */
  readonly message: string;
}

type YAML =
  { readonly ok: true; readonly content: unknown } | { readonly ok: false; readonly problems: readonly YAMLProblem[] };

const maxAliases = 100;

const messages: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias has an anchor or a tag',
  BAD_ALIAS: 'malformed alias',
  BAD_COLLECTION_TYPE: 'the tag does not match its mapping or list',
  BAD_DIRECTIVE: 'malformed directive',
  BAD_DQ_ESCAPE: 'unknown escape sequence in double quotes',
  BAD_INDENT: 'wrong indentation',
  BAD_PROP_ORDER: 'an anchor or a tag is in the wrong place',
  BAD_SCALAR_START: 'plain text starts with a reserved character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a key or list item follows a value; fix the indentation, or put the value in quotes',
  BLOCK_IN_FLOW: 'a block collection is not allowed in a flow collection',
  DUPLICATE_KEY: 'duplicate key',
  IMPOSSIBLE: 'unreadable',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  MISSING_CHAR: 'a quote, bracket, colon, comma or space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line',
  MULTIPLE_ANCHORS: 'a value has two anchors',
  MULTIPLE_DOCS: 'only one document is allowed',
  MULTIPLE_TAGS: 'a value has two tags',
  NON_STRING_KEY: 'keys must be text',
  RESOURCE_EXHAUSTION: 'too deeply nested',
  TAB_AS_INDENT: 'tabs are not allowed for indentation',
  TAG_RESOLVE_FAILED: 'the tag does not match its value',
  UNEXPECTED_TOKEN: 'unexpected text after a value; put the value in quotes',
};

export interface YAMLToken {
  /** Token type in the library; null for text that is not YAML. */
  readonly type: CST.TokenType | null;
  readonly source: string;
  readonly offset: number;
}

/** Returns the tokens one at a time, without parsing them. */
export function* tokensOf(text: string): Generator<YAMLToken> {
  let offset = 0;
  let isScalar = false;
  for (const source of new Lexer().lex(text)) {
    const type = isScalar ? 'scalar' : CST.tokenType(source);
    isScalar = source === CST.SCALAR;
    // Skips the marker tokens that the library adds, because they do not occur in the text.
    if (isScalar || source === CST.DOCUMENT || source === CST.FLOW_END) continue;
    yield { type, source, offset };
    offset += source.length;
  }
}

/** Parses YAML. Reports all problems at once, and never throws. */
export function readYAML(text: string): YAML {
  const lines = new LineCounter();
  const positionOf = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const fail = (offset: number, message: string): YAML => ({
    ok: false,
    problems: [{ position: positionOf(offset), message }],
  });
  try {
    const options = { lineCounter: lines, uniqueKeys: true, stringKeys: true, prettyErrors: false };
    const document = withoutStacks(() => parseDocument(text, options));
    if (document.errors.length > 0)
      return {
        ok: false,
        problems: document.errors.map(({ code, pos }) => ({ position: positionOf(pos[0]), message: messages[code] })),
      };
    const unresolved = unresolvedAlias(document);
    if (unresolved !== undefined) return fail(unresolved, 'alias without an anchor before it; put the text in quotes');
    return { ok: true, content: document.toJS({ maxAliasCount: maxAliases }) };
  } catch {
    return fail(0, `too deeply nested, or more than ${maxAliases} aliases`);
  }
}

/**
 * Calls the function without collecting stack traces. The library creates an Error for each problem, and unused stack
 * traces would take most of the time.
 */
function withoutStacks<T>(parse: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parse();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Returns the offset of the first alias without an anchor before it. */
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
