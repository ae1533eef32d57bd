import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { StatusError } from '../../../../src/runtime/errors.ts';
import {
  matcher,
  parseFieldSelector,
  parseLabelSelector,
  type LabelRequirement,
} from '../../../../src/apimachinery/list/selectors.ts';

const labels = { env: 'prod', tier: '', 'kubernetes.io/arch': 'amd64', size: '12', in: 'notin' };

const write = ({ key, operator, values }: LabelRequirement, gap: string): string => {
  if (operator === 'exists') return `${gap}${key}${gap}`;
  if (operator === '!') return `!${gap}${key}`;
  if (operator === 'in' || operator === 'notin')
    return `${key} ${operator}${gap}(${gap}${values.join(`${gap},${gap}`)})`;
  return `${key}${gap}${operator}${gap}${values[0]}${gap}`;
};

const matches = (requirements: readonly LabelRequirement[], of: Readonly<Record<string, string>>): boolean =>
  matcher<typeof of>(requirements, (object, key) => (Object.hasOwn(object, key) ? object[key] : undefined))(of);

describe('a label selector', () => {
  test.each([
    ['matches', ''],
    ['matches', ' \t\n'],
    ['matches', 'env'],
    ['does not match', '!env'],
    ['matches', '! missing'],
    ['matches', 'env=prod'],
    ['matches', 'env==prod'],
    ['matches', ' env = prod , tier = '],
    ['matches', 'tier='],
    ['does not match', 'missing='],
    ['does not match', 'env!=prod'],
    ['matches', 'missing!=x'],
    ['matches', 'env in (dev,prod)'],
    ['matches', 'env in(dev,prod)'],
    ['does not match', 'env in ( dev )'],
    ['matches', 'env notin (dev)'],
    ['matches', 'missing notin (dev)'],
    ['matches', 'tier in ()'],
    ['matches', 'tier in (,a)'],
    ['matches', 'tier in (a,)'],
    ['does not match', 'env in (a,,b)'],
    ['matches', 'kubernetes.io/arch=amd64,env'],
    ['matches', 'size>11'],
    ['does not match', 'size>12'],
    ['matches', 'size<13'],
    ['does not match', 'env>1'],
    ['does not match', 'missing<1'],
    ['matches', 'in=notin'],
    ['matches', 'in in (in,notin)'],
    ['does not match', 'toString'],
    ['does not match', 'constructor'],
  ])('a label selector %s the labels, as in Kubernetes: %j', (outcome, selector) => {
    expect(matches(parseLabelSelector(selector), labels)).toBe(outcome === 'matches');
  });

  test.each([
    ['env=prod,', "found '', expected: identifier after ','"],
    [',env', "found ',', expected: !, identifier, or 'end of string'"],
    ['env prod', "found 'prod', expected: =, !=, ==, in, notin, >, <"],
    ['env=a b', "found 'b', expected: ',' or 'end of string'"],
    ['env=!a', "found '!', expected: identifier"],
    ['!env=a', "found '=', expected: ',' or 'end of string'"],
    ['!', "found '', expected: identifier"],
    ['env in prod', "found 'prod', expected: '('"],
    ['env in (a b)', "found 'b', expected: ',' or ')'"],
    ['env in (a', "found '', expected: ',' or ')'"],
    ['env in (a=b)', "found '=', expected: ',' or ')'"],
    ['env=>1', "found '>', expected: identifier"],
    ['env===a', "found '=', expected: identifier"],
    ['a/b/c=d', 'a valid label key must consist of'],
    ['/b=d', 'prefix part must be non-empty'],
    ['A.io/b=d', 'prefix part must be a lowercase RFC 1123 subdomain'],
    [`${'a'.repeat(254)}/b`, 'no more than 253 characters'],
    ['a/=d', 'name part must be non-empty'],
    ['-a=d', 'name part must consist of'],
    [`${'a'.repeat(64)}=d`, 'name part must be no more than 63 characters'],
    ['a=-b', 'a valid label must be an empty string or consist of'],
    [`a=${'b'.repeat(64)}`, 'must be no more than 63 characters'],
    ['a in (b,ü)', 'values[a]: Invalid value: "ü"'],
    ['a>b', "for 'Gt', 'Lt' operators, the value must be an integer"],
    ['a>9223372036854775808', 'the value must be an integer'],
  ])('the label selector %j is rejected with 400', (selector, message) => {
    const parse = (): unknown => parseLabelSelector(selector);
    expect(parse).toThrow(StatusError);
    expect(parse).toThrow(message);
  });

  test('a label selector for annotations accepts any value', () => {
    expect(matches(parseLabelSelector('a=https://x/?y', true), { a: 'https://x/?y' })).toBe(true);
    expect(matches(parseLabelSelector('a=https://x/', true), { a: 'https://x/' })).toBe(true);
  });

  const name = fc.stringMatching(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?$/);
  const space = fc.constantFrom('', ' ', '\t');
  const requirement = fc.oneof(
    fc.record({ key: name, operator: fc.constantFrom('exists' as const, '!' as const), values: fc.constant([]) }),
    fc.record({ key: name, operator: fc.constantFrom('=' as const, '!=' as const), values: fc.tuple(name) }),
    fc.record({
      key: name,
      operator: fc.constantFrom('in' as const, 'notin' as const),
      values: fc.uniqueArray(name, { minLength: 1, maxLength: 4 }),
    }),
  );

  test('a label selector is parsed in every notation', () => {
    fc.assert(
      fc.property(fc.uniqueArray(requirement, { selector: JSON.stringify }), space, (requirements, gap) => {
        expect(parseLabelSelector(requirements.map((one) => write(one, gap)).join(','))).toEqual(requirements);
      }),
    );
  });

  test('a label selector selects the same objects as a simple model of selectors', () => {
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 3 }), fc.dictionary(name, name), (requirements, object) => {
        const has = (key: string): boolean => Object.keys(object).includes(key);
        const naive = requirements.every(({ key, operator, values }) => {
          const hit = has(key) && (values as string[]).includes(object[key] ?? '');
          return { exists: has(key), '!': !has(key), '=': hit, in: hit, '!=': !hit, notin: !hit }[operator];
        });
        expect(matches(requirements, object)).toBe(naive);
      }),
    );
  });

  test('random text as a label selector is either accepted or rejected with 400', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[ab/!=<>(), innot]*$/)), (selector) => {
        let refusal: unknown;
        try {
          parseLabelSelector(selector);
        } catch (error) {
          refusal = error;
        }
        expect([undefined, 400]).toContain(refusal instanceof StatusError ? refusal.code : refusal);
      }),
    );
  });
});

describe('a field selector', () => {
  test.each([
    ['', []],
    [',', []],
    ['a.b=c', [{ path: 'a.b', equals: true, value: 'c' }]],
    ['a==c', [{ path: 'a', equals: true, value: 'c' }]],
    [
      'a!=c,b=',
      [
        { path: 'a', equals: false, value: 'c' },
        { path: 'b', equals: true, value: '' },
      ],
    ],
    ['a=x\\,y\\=z\\\\', [{ path: 'a', equals: true, value: 'x,y=z\\' }]],
    [
      'a=\\\\,b=1',
      [
        { path: 'a', equals: true, value: '\\' },
        { path: 'b', equals: true, value: '1' },
      ],
    ],
  ])('the field selector %j is parsed', (selector, terms) => {
    expect(parseFieldSelector(selector)).toEqual(terms);
  });

  test.each([
    ['a', "invalid selector: 'a'; can't understand 'a'"],
    ['a=b=c', 'unescaped character in value: ='],
    ['a=b\\c', 'invalid escape sequence: \\c'],
    ['a=b\\', 'invalid escape sequence: \\'],
  ])('the field selector %j is rejected with 400', (selector, message) => {
    expect(() => parseFieldSelector(selector)).toThrow(StatusError);
    expect(() => parseFieldSelector(selector)).toThrow(message);
  });

  test('a field selector can contain any value in escaped form', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (values) => {
        const text = values.map((value, index) => `p${index}=${value.replace(/[\\,=]/g, '\\$&')}`).join(',');
        expect(parseFieldSelector(text).map(({ value }) => value)).toEqual(values);
      }),
    );
  });
});

const many = (count: number, part: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => part(index)).join(',');

const aRequirement = (index: number): string => `k${index}=v`;
const aTerm = (index: number): string => `metadata.name!=n${index}`;

describe('the size limit of selectors', () => {
  test.each<[string, (selector: string) => readonly unknown[], (index: number) => string, number]>([
    ['expected a selector of at most 64 requirements, got 65', parseLabelSelector, aRequirement, 64],
    ['expected a selector of at most 32 terms, got 33', parseFieldSelector, aTerm, 32],
  ])('the size limit of selectors is enforced: %s', (message, parse, part, max) => {
    expect(parse(many(max, part))).toHaveLength(max);
    expect(() => parse(many(max + 1, part))).toThrow(StatusError);
    expect(() => parse(many(max + 1, part))).toThrow(message);
    // Repeated requirements are evaluated once.
    expect(parse(many(300, () => part(0)))).toEqual(parse(part(0)));
  });

  test.each([
    ['label', parseLabelSelector],
    ['field', parseFieldSelector],
  ])('a %s selector has at most 8192 characters', (_, parse) => {
    expect(() => parse(many(2_048, () => 'a=b'))).not.toThrow();
    expect(() => parse(many(2_049, () => 'a=b'))).toThrow('expected a selector of at most 8192 characters, got 8195');
  });
});
