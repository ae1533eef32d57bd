import { describe, expect, test } from '@jest/globals';
import { StatusError } from '../../../../src/runtime/errors.ts';
import { apisCollectionParameters, apisObjectParameters } from '../../../../src/apimachinery/list/apis-parameters.ts';
import { listOptions, requestedVersion, watchOptions } from '../../../../src/apimachinery/list/list-options.ts';

const parseListOptions = (query: URLSearchParams): unknown => listOptions(apisCollectionParameters.parse(query));
const parseWatchOptions = (query: URLSearchParams): unknown => watchOptions(apisCollectionParameters.parse(query));
const parseGetOptions = (query: URLSearchParams): unknown => requestedVersion(apisObjectParameters.parse(query));

/** Returns the parsed options, or the error as text. */
function outcome(parse: (options: URLSearchParams) => unknown, text: string): unknown {
  try {
    return parse(new URLSearchParams(text));
  } catch (error) {
    if (error instanceof StatusError) return `${error.code} ${error.message}`;
    throw error;
  }
}

const invalid = (...problems: readonly string[]): string =>
  `422 ListOptions.meta.k8s.io "" is invalid: ${problems.length > 1 ? `[${problems.join(', ')}]` : problems[0]}`;
const match = (reason: string): string => `resourceVersionMatch: Forbidden: ${reason}`;
const needsVersion = match('resourceVersionMatch is forbidden unless resourceVersion is provided');
const notWithContinue = match('resourceVersionMatch is forbidden when continue is provided');
const needsInitialEvents = match('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided');
const needsMatch = match('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
const unsupported = (value: string, supported: string): string =>
  `resourceVersionMatch: Unsupported value: "${value}": supported values: ${supported}`;

describe('list options', () => {
  const defaults = { resourceVersion: 'latest', resourceVersionMatch: '', limit: 0, continue: '' };

  test.each([
    ['', {}],
    ['resourceVersion=', {}],
    ['resourceVersion=0', { resourceVersion: 'any' }],
    ['resourceVersion=00', { resourceVersion: 'any' }],
    ['resourceVersion=007', { resourceVersion: 7 }],
    ['resourceVersion=18446744073709551615', { resourceVersion: 2 ** 64 }],
    ['resourceVersion=7&resourceVersion=x', { resourceVersion: 7 }],
    ['resourceVersion=7&resourceVersionMatch=Exact', { resourceVersion: 7, resourceVersionMatch: 'Exact' }],
    [
      'resourceVersion=0&resourceVersionMatch=NotOlderThan',
      { resourceVersion: 'any', resourceVersionMatch: 'NotOlderThan' },
    ],
    ['resourceVersionMatch=', {}],
    ['limit=0', {}],
    ['limit=5', { limit: 5 }],
    ['limit=%2B5', { limit: 5 }],
    ['limit=-5', {}],
    ['limit=9223372036854775807', { limit: 2 ** 63 }],
    ['limit=5&limit=x', { limit: 5 }],
    ['continue=abc', { continue: 'abc' }],
    ['timeoutSeconds=1', {}],
    ['timeoutSeconds=-1', {}],
    ['allowWatchBookmarks=true', {}],
    ['watch=false', {}],
  ])('the list options %j are accepted', (text, more) => {
    expect(outcome(parseListOptions, text)).toEqual({ ...defaults, ...more });
  });

  test.each([
    ['limit=', '400 limit: "" is not a 64-bit integer'],
    ['limit=x', '400 limit: "x" is not a 64-bit integer'],
    ['limit=1.5', '400 limit: "1.5" is not a 64-bit integer'],
    ['limit=0x10', '400 limit: "0x10" is not a 64-bit integer'],
    ['limit=9223372036854775808', '400 limit: "9223372036854775808" is not a 64-bit integer'],
    ['limit=-9223372036854775809', '400 limit: "-9223372036854775809" is not a 64-bit integer'],
    ['limit=x&limit=5', '400 limit: "x" is not a 64-bit integer'],
    ['timeoutSeconds=x', '400 timeoutSeconds: "x" is not a 64-bit integer'],
    ['resourceVersion=x', '400 invalid resource version: "x"'],
    ['resourceVersion=-1', '400 invalid resource version: "-1"'],
    ['resourceVersion=%2B1', '400 invalid resource version: "+1"'],
    ['resourceVersion=18446744073709551616', '400 invalid resource version: "18446744073709551616"'],
    ['resourceVersionMatch=Exact', invalid(needsVersion)],
    ['resourceVersionMatch=NotOlderThan', invalid(needsVersion)],
    ['resourceVersion=1&resourceVersionMatch=exact', invalid(unsupported('exact', '"Exact", "NotOlderThan", ""'))],
    ['resourceVersionMatch=Best', invalid(needsVersion, unsupported('Best', '"Exact", "NotOlderThan", ""'))],
    ['resourceVersion=1&resourceVersionMatch=Exact&continue=x', invalid(notWithContinue)],
    [
      'resourceVersion=0&resourceVersionMatch=Exact',
      invalid(match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')),
    ],
    ...['sendInitialEvents=true', 'sendInitialEvents=false', 'sendInitialEvents='].map((text): [string, string] => [
      text,
      invalid('sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'),
    ]),
  ])('the list options %j are rejected', (text, expected) => {
    expect(outcome(parseListOptions, text)).toBe(expected);
  });
});

describe('watch options', () => {
  const none = { sendInitialEvents: false, allowWatchBookmarks: false, timeoutSeconds: undefined };

  test.each([
    ['', { resourceVersion: 'latest', sendInitialEvents: true }],
    ['resourceVersion=', { resourceVersion: 'latest', sendInitialEvents: true }],
    ['resourceVersion=0', { resourceVersion: 'any', sendInitialEvents: true }],
    ['resourceVersion=7', { resourceVersion: 7 }],
    [
      'sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
      { resourceVersion: 'latest', sendInitialEvents: true },
    ],
    ['sendInitialEvents=&resourceVersionMatch=NotOlderThan', { resourceVersion: 'latest', sendInitialEvents: true }],
    ['sendInitialEvents=false&resourceVersionMatch=NotOlderThan', { resourceVersion: 'latest' }],
    ['sendInitialEvents=0&resourceVersionMatch=NotOlderThan&resourceVersion=0', { resourceVersion: 'any' }],
    [
      'sendInitialEvents=1&resourceVersionMatch=NotOlderThan&resourceVersion=7',
      { resourceVersion: 7, sendInitialEvents: true },
    ],
    ['resourceVersion=7&allowWatchBookmarks=true', { resourceVersion: 7, allowWatchBookmarks: true }],
    ['resourceVersion=7&allowWatchBookmarks=FALSE', { resourceVersion: 7 }],
    ['resourceVersion=7&timeoutSeconds=5', { resourceVersion: 7, timeoutSeconds: 5 }],
    ['resourceVersion=7&timeoutSeconds=0', { resourceVersion: 7 }],
    ['resourceVersion=7&timeoutSeconds=-5', { resourceVersion: 7 }],
    ['resourceVersion=7&limit=5', { resourceVersion: 7 }],
    ['resourceVersion=7&continue=x', { resourceVersion: 7 }],
  ])('the watch options %j are accepted', (text, more) => {
    expect(outcome(parseWatchOptions, text)).toEqual({ ...none, ...more });
  });

  test.each([
    ['timeoutSeconds=x', '400 timeoutSeconds: "x" is not a 64-bit integer'],
    ['limit=x', '400 limit: "x" is not a 64-bit integer'],
    ['resourceVersion=x', '400 invalid resource version: "x"'],
    // A streaming list cannot be continued.
    ['continue=x', invalid(notWithContinue)],
    ['resourceVersion=0&continue=x', invalid(notWithContinue)],
    ['resourceVersionMatch=NotOlderThan', invalid(needsInitialEvents)],
    ['resourceVersion=7&resourceVersionMatch=NotOlderThan', invalid(needsInitialEvents)],
    ['resourceVersionMatch=Exact', invalid(needsInitialEvents, unsupported('Exact', '"NotOlderThan"'))],
    ['sendInitialEvents=true', invalid(needsMatch)],
    ['sendInitialEvents=false&resourceVersion=7', invalid(needsMatch)],
    ['sendInitialEvents=true&resourceVersionMatch=Exact', invalid(needsMatch, unsupported('Exact', '"NotOlderThan"'))],
    ['sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x', invalid(notWithContinue)],
  ])('the watch options %j are rejected', (text, expected) => {
    expect(outcome(parseWatchOptions, text)).toBe(expected);
  });
});

test.each([
  ['', 'latest'],
  ['resourceVersion=0', 'any'],
  ['resourceVersion=7', 7],
  ['resourceVersion=x', '400 invalid resource version: "x"'],
  // These parameters do not apply to a get.
  ['limit=x&resourceVersionMatch=Exact', 'latest'],
])('parsing the resourceVersion of a get with the query %j results in %s', (text, expected) => {
  expect(outcome(parseGetOptions, text)).toBe(expected);
});
