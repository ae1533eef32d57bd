/** What is asked for by an operation once its form is filled in, as it is sent and as curl would send it. */
import type { ShownOperation, ShownParameter } from './openapi.ts';

export interface Field {
  readonly name: string;
  readonly value: string;
}

export type SentBody =
  | { readonly type: string; readonly text: string; readonly isSecret?: boolean }
  /** As a form of HTML is sent. */
  | { readonly fields: readonly Field[] };

export interface FilledIn {
  /** In the order of the operation's own; '' is not sent. */
  readonly parameters: readonly string[];
  /** A media type. */
  readonly accept: string;
  readonly body?: SentBody | undefined;
  readonly withToken: boolean;
}

export interface HTTPRequest {
  readonly method: string;
  /** With the query; begins with a slash. */
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: SentBody | undefined;
  readonly withToken: boolean;
  /** The answer may have no end. */
  readonly isStream: boolean;
}

/** It cannot be sent. */
export class Unsendable extends Error {
  /** Of the parameter that is in the way. */
  readonly index: number;

  constructor(message: string, index: number) {
    super(message);
    this.index = index;
  }
}

const endless = new Set(['text/event-stream', 'application/x-ndjson', 'application/jsonl']);
const isTrue = (text: string | undefined): boolean => text === 'true' || text === '1';

/** Throws Unsendable. */
export function requestOf(operation: ShownOperation, { parameters, accept, body, withToken }: FilledIn): HTTPRequest {
  const given = operation.parameters.map((parameter, index) => [parameter, parameters[index] ?? '', index] as const);
  const sent = (place: ShownParameter['in']): readonly (readonly [string, string])[] =>
    given.filter((one) => one[0].in === place && one[1] !== '').map(([{ name }, value]) => [name, value]);
  let { path } = operation;
  for (const [parameter, value, index] of given.filter(([one]) => one.in === 'path')) {
    if (value === '') throw new Unsendable(`${parameter.name} is missing: it is a part of the path`, index);
    // Browsers take such a segment out of the path, and ask for another one.
    if (value === '.' || value === '..') throw new Unsendable(`${parameter.name} cannot be ${value} in a path`, index);
    // encodeURIComponent has no bytes for half a character.
    if (!value.isWellFormed()) throw new Unsendable(`${parameter.name} has half a character in it`, index);
    path = path.replace(`{${parameter.name}}`, () => encodeURIComponent(value));
  }
  const query = new URLSearchParams(sent('query').map(([name, value]): [string, string] => [name, value]));
  return {
    method: operation.method,
    path: query.size === 0 ? path : `${path}?${query.toString()}`,
    headers: [
      ...(accept === '' ? [] : [['Accept', accept] as const]),
      ...sent('header'),
      ...(body === undefined ? [] : [['Content-Type', 'fields' in body ? formType : body.type] as const]),
    ],
    body,
    withToken,
    isStream: endless.has(accept) || ['watch', 'follow'].some((name) => isTrue(query.get(name) ?? undefined)),
  };
}

export const formType = 'application/x-www-form-urlencoded';

/** As it goes over the wire. */
export function bytesOf(body: SentBody): string {
  if (!('fields' in body)) return body.text;
  return new URLSearchParams(body.fields.map(({ name, value }): [string, string] => [name, value])).toString();
}

/** Nobody is to look at it over a shoulder, nor in the history of a shell. */
export const isSecret = (name: string, format?: unknown): boolean =>
  format === 'password' || /(?:password|secret|token)$/.test(name);

/** POSIX.1-2024 section 2.2.2: all but the quote itself is itself. */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
const variable = (name: string): string => `$${name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}`;

const dataOf = (body: SentBody): readonly string[] =>
  'fields' in body
    ? body.fields.map(({ name, value }) =>
        isSecret(name)
          ? `--data-urlencode "${encodeURIComponent(name)}=${variable(name)}"`
          : `--data-urlencode ${quoted(`${encodeURIComponent(name)}=${value}`)}`,
      )
    : // A shell would have to write the secret as JSON: curl is given all of it.
      [body.isSecret === true ? '--data-binary @-' : `--data-raw ${quoted(body.text)}`];

/** For a POSIX shell. Tokens and passwords are variables in it. `base`: without a slash at its end. */
export function curlOf({ method, path, headers, body, withToken, isStream }: HTTPRequest, base: string): string {
  const byItself = body === undefined ? 'GET' : 'POST';
  return [
    `curl -sS${isStream ? 'N' : ''} ${quoted(`${base}${path}`)}`,
    ...(method === byItself ? [] : [`-X ${method}`]),
    ...(withToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...headers.filter(([, value]) => value !== formType).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : dataOf(body)),
  ].join(' \\\n  ');
}
