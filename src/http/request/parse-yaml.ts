/**
 * Parses YAML sent by a caller. The library takes up to 6 µs for a token, or 20 µs within nested brackets. The library
 * also compares each key with all other keys. Parsing 64 KiB therefore blocks the event loop for up to 400 ms. The
 * lexer of the library is fast, so the tokens are checked and counted first.
 */
import { readYAML, tokensOf, type YAMLToken } from '../../config/yaml.ts';
import { decodeUTF8, maxDepth, parseJSON } from './parse-json.ts';

/**
 * Maximum number of tokens. A line `key: value` has six tokens including its indentation. A scalar of several lines has
 * one token per line.
 */
const maxTokens = 1_000;

/**
 * Features of YAML that can expand a short text into a huge value, or that mean something else in the YAML 1.1 of
 * kubectl.
 */
const refusals: Readonly<Partial<Record<string, string>>> = {
  alias: 'aliases are not accepted; repeat the value, or put the text in quotes',
  anchor: 'anchors are not accepted; repeat the value, or put the text in quotes',
  'directive-line': 'directives are not accepted; remove the line',
  'explicit-key-ind': 'keys after "?" are not accepted; write "key: value"',
  tag: 'tags are not accepted; remove the tag, or put the text in quotes',
};

/** Matches control characters and line breaks that the YAML 1.1 of kubectl reads differently. */
const refusedCharacter = /[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]|\r(?!\n)/u;

class YAMLError extends SyntaxError {
  constructor(text: string, offset: number, message: string) {
    const before = text.slice(0, offset);
    const line = before.split('\n').length;
    super(`is not accepted as YAML: line ${line}, column ${offset - before.lastIndexOf('\n')}: ${message}`);
  }
}

/**
 * Returns the value of one YAML document that uses only features that JSON can express. Throws a SyntaxError whose
 * message starts with a verb for the subject "the body". The message never quotes the text, which may contain a
 * password.
 */
export function parseYAML(bytes: Buffer): unknown {
  const text = decodeUTF8(bytes);
  if (text === undefined) throw new SyntaxError('is not YAML in UTF-8');
  const character = text.search(refusedCharacter);
  if (character !== -1)
    throw new YAMLError(text, character, 'control characters are not accepted; use escape sequences in double quotes');
  checkTokens(text);
  const yaml = readYAML(text);
  const [problem] = yaml.ok ? [] : yaml.problems;
  if (problem !== undefined) throw new SyntaxError(`is not accepted as YAML: ${problem.position}: ${problem.message}`);
  // `parseJSON` applies its limits on nesting and on the number of values.
  return parseJSON(Buffer.from(JSON.stringify(yaml.ok ? yaml.content : null)));
}

function checkTokens(text: string): void {
  let count = 0;
  let depth = 0;
  for (const token of tokensOf(text)) {
    const { type, source, offset } = token;
    count += type === 'newline' ? 1 : source.split('\n', maxTokens + 1).length;
    if (type === 'flow-map-start' || type === 'flow-seq-start') depth += 1;
    if (type === 'flow-map-end' || type === 'flow-seq-end') depth -= 1;
    if (count > maxTokens)
      throw new YAMLError(text, offset, `at most ${maxTokens} tokens (about 200 lines) are accepted; send JSON`);
    if (depth > maxDepth) throw new YAMLError(text, offset, `at most ${maxDepth} levels are accepted`);
    const refusal = refusalOf(token);
    if (refusal !== undefined) throw new YAMLError(text, offset, refusal);
  }
}

function refusalOf({ type, source }: YAMLToken): string | undefined {
  if (type !== 'scalar') return refusals[type ?? ''];
  if (source === '<<') return 'merge keys are not accepted; repeat the keys, or put the text in quotes';
  // JSON cannot express infinite numbers and NaN.
  return /^[-+]?\.(?:inf|nan)$/i.test(source) || (/^[-+]?[\d.]/.test(source) && Math.abs(Number(source)) === Infinity)
    ? 'infinity and numbers larger than 1.8e308 are not accepted; put text in quotes'
    : undefined;
}
