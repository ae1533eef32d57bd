/**
 * Parses the selectors of Kubernetes, with the same grammar and error messages (k8s.io/apimachinery
 * pkg/labels/selector.go and pkg/fields/selector.go).
 */
import { isSubdomain } from '../../config/names.ts';
import { badRequest } from '../../runtime/errors.ts';
import { all } from '../../cluster/cache/selection.ts';
import { splitAtCommas } from './field-path.ts';

type Operator = '=' | '!=' | 'in' | 'notin' | 'exists' | '!' | '>' | '<';

export interface LabelRequirement {
  readonly key: string;
  readonly operator: Operator;
  /** One value for = (also written ==), !=, > and <; none for exists and !. */
  readonly values: readonly string[];
}

/**
 * Limits on a selector, because each requirement is tested on every object, and each field is searched in the object's
 * bytes. Larger selectors would delay all callers.
 */
const maxRequirements = 64;
const maxTerms = 32;
const maxSelectorLength = 8 * 1024;

function checkLength(selector: string): void {
  if (selector.length > maxSelectorLength)
    throw badRequest(`expected a selector of at most ${maxSelectorLength} characters, got ${selector.length}`);
}

/** Removes duplicates. Throws 400 if more than `max` are left; `what` names the parts. */
function distinct<T>(parts: readonly T[], max: number, what: string): readonly T[] {
  const found = new Map(parts.map((part) => [JSON.stringify(part), part]));
  if (found.size > max) throw badRequest(`expected a selector of at most ${max} ${what}, got ${found.size}`);
  return [...found.values()];
}

type Token = { readonly kind: 'identifier' | 'symbol' | 'end'; readonly text: string };

const binaryOperators = '=, !=, ==, in, notin, >, <';
const symbols = /^(?:==|!=|[=!(),<>])/;
const identifier = /^[^ \t\r\n=!(),<>]+/;

function tokensOf(selector: string): Token[] {
  const tokens: Token[] = [];
  let rest = selector.replace(/^[ \t\r\n]+/, '');
  while (rest !== '') {
    const symbol = symbols.exec(rest)?.[0];
    const text = symbol ?? identifier.exec(rest)?.[0] ?? rest.charAt(0);
    tokens.push({ kind: symbol === undefined ? 'identifier' : 'symbol', text });
    rest = rest.slice(text.length).replace(/^[ \t\r\n]+/, '');
  }
  tokens.push({ kind: 'end', text: '' });
  return tokens;
}

const isSymbol = (token: Token, text: string): boolean => token.kind === 'symbol' && token.text === text;
const isEndOfTerm = (token: Token): boolean => token.kind === 'end' || isSymbol(token, ',');

function fail(found: Token, expected: string): never {
  throw badRequest(`unable to parse requirement: found '${found.text}', expected: ${expected}`);
}

/**
 * Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`. The empty selector selects everything. Throws 400. `anyValue`
 * accepts values that are not label values: annotation keys have the syntax of label keys, but annotation values can be
 * any text.
 */
export function parseLabelSelector(selector: string, anyValue = false): readonly LabelRequirement[] {
  checkLength(selector);
  const tokens = tokensOf(selector);
  let position = 0;
  const peek = (): Token => tokens[position] as Token;
  const next = (): Token => tokens[position++] as Token;

  function requirement(): LabelRequirement {
    const negated = isSymbol(peek(), '!');
    if (negated) next();
    const key = next();
    if (key.kind !== 'identifier') fail(key, 'identifier');
    checkKey(key.text);
    if (negated || isEndOfTerm(peek())) return { key: key.text, operator: negated ? '!' : 'exists', values: [] };
    const operator = next();
    switch (operator.text) {
      case '=':
      case '==':
        return { key: key.text, operator: '=', values: [exactValue(key.text)] };
      case '!=':
        return { key: key.text, operator: '!=', values: [exactValue(key.text)] };
      case '>':
      case '<':
        return { key: key.text, operator: operator.text, values: [integerValue(exactValue(key.text))] };
      case 'in':
      case 'notin':
        return { key: key.text, operator: operator.text, values: valueList(key.text) };
      default:
        return fail(operator, binaryOperators);
    }
  }

  function checkValue(key: string, value: string): string {
    if (!anyValue) checkLabelValue(key, value);
    return value;
  }

  function exactValue(key: string): string {
    if (isEndOfTerm(peek())) return checkValue(key, '');
    const value = next();
    if (value.kind !== 'identifier') fail(value, 'identifier');
    return checkValue(key, value.text);
  }

  /** Parses `(a,b)`. Two consecutive commas, or a comma at either end, denote the empty value. */
  function valueList(key: string): readonly string[] {
    const open = next();
    if (!isSymbol(open, '(')) fail(open, "'('");
    const values = new Set<string>();
    let value = '';
    for (;;) {
      const token = next();
      if (isSymbol(token, ',') || isSymbol(token, ')')) {
        values.add(checkValue(key, value));
        value = '';
        if (token.text === ')') return [...values];
      } else if (token.kind === 'identifier' && value === '') value = token.text;
      else fail(token, "',' or ')'");
    }
  }

  const requirements: LabelRequirement[] = [];
  if (peek().kind === 'end') return requirements;
  for (;;) {
    const first = peek();
    if (first.kind !== 'identifier' && !isSymbol(first, '!'))
      throw badRequest(
        requirements.length === 0
          ? `found '${first.text}', expected: !, identifier, or 'end of string'`
          : `found '${first.text}', expected: identifier after ','`,
      );
    requirements.push(requirement());
    const separator = next();
    if (separator.kind === 'end') return distinct(requirements, maxRequirements, 'requirements');
    if (!isSymbol(separator, ',')) throw badRequest(`found '${separator.text}', expected: ',' or 'end of string'`);
  }
}

const namePattern = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const nameRule =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/** Validates a key like validation.IsQualifiedName. */
function checkKey(key: string): void {
  const [name = '', prefix, ...more] = key.split('/').toReversed();
  const wrong =
    more.length > 0
      ? `a valid label key ${nameRule}, with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`
      : prefix === ''
        ? 'prefix part must be non-empty'
        : prefix !== undefined && !isSubdomain(prefix)
          ? "prefix part must be a lowercase RFC 1123 subdomain of no more than 253 characters (e.g. 'example.com')"
          : name === ''
            ? 'name part must be non-empty'
            : name.length > 63
              ? 'name part must be no more than 63 characters'
              : namePattern.test(name)
                ? undefined
                : `name part ${nameRule} (e.g. 'MyName', or 'my.name', or '123-abc')`;
  if (wrong !== undefined)
    throw badRequest(`unable to parse requirement: Invalid value: ${JSON.stringify(key)}: ${wrong}`);
}

/** Validates a value like validation.IsValidLabelValue. */
function checkLabelValue(key: string, value: string): void {
  const wrong =
    value.length > 63
      ? 'must be no more than 63 characters'
      : value === '' || namePattern.test(value)
        ? undefined
        : `a valid label must be an empty string or ${nameRule.replace('must ', '')}`;
  if (wrong !== undefined)
    throw badRequest(`unable to parse requirement: values[${key}]: Invalid value: ${JSON.stringify(value)}: ${wrong}`);
}

function integerValue(value: string): string {
  if (int64(value) === undefined)
    throw badRequest(
      `unable to parse requirement: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  return value;
}

function int64(text: string): bigint | undefined {
  if (!/^[+-]?\d{1,19}$/.test(text)) return undefined;
  const value = BigInt(text.replace('+', ''));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/** Returns a function that tests all requirements. `valueOf` returns the object's label or annotation with a key. */
export function matcher<T>(
  requirements: readonly LabelRequirement[],
  valueOf: (object: T, key: string) => string | undefined,
): (object: T) => boolean {
  return all(
    requirements.map((requirement) => {
      const { key } = requirement;
      const meets = test(requirement);
      return (object: T) => meets(valueOf(object, key));
    }),
  );
}

function test({ operator, values }: LabelRequirement): (value: string | undefined) => boolean {
  const [first = ''] = values;
  switch (operator) {
    case 'exists':
      return (value) => value !== undefined;
    case '!':
      return (value) => value === undefined;
    case '=':
      return (value) => value === first;
    case '!=':
      return (value) => value !== first;
    case 'in':
    case 'notin': {
      const known = new Set(values);
      const wanted = operator === 'in';
      return (value) => (value !== undefined && known.has(value)) === wanted;
    }
    case '>':
    case '<': {
      const bound = int64(first);
      return (value) => {
        const number = value === undefined ? undefined : int64(value);
        if (number === undefined || bound === undefined) return false;
        return operator === '>' ? number > bound : number < bound;
      };
    }
    default:
      return operator satisfies never;
  }
}

export interface FieldSelectorTerm {
  readonly path: string;
  readonly equals: boolean;
  readonly value: string;
}

/**
 * Parses `a.b=c,d!=e`, with `\,`, `\=` and `\\` in values; `==` means `=`. Throws 400; `hint` is appended to the
 * message about an invalid term.
 */
export function parseFieldSelector(selector: string, hint = ''): readonly FieldSelectorTerm[] {
  checkLength(selector);
  const terms = splitAtCommas(selector)
    .filter((term) => term !== '')
    .map((term) => {
      const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term);
      if (match === null) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'${hint}`);
      const [, path = '', operator = '', value = ''] = match;
      return { path, equals: operator !== '!=', value: unescape(value) };
    });
  return distinct(terms, maxTerms, 'terms');
}

function unescape(value: string): string {
  return value.replace(/\\(.?)|[,=]/gs, (sequence, escaped?: string) => {
    if (escaped === undefined) throw badRequest(`invalid field selector: unescaped character in value: ${sequence}`);
    if (escaped === '' || !'\\,='.includes(escaped))
      throw badRequest(`invalid field selector: invalid escape sequence: ${sequence}`);
    return escaped;
  });
}
