/** Builds the request of an operation from its filled-in form. */
import type { ShownOperation, ShownParameter } from './openapi.ts';

export interface Field {
  readonly name: string;
  readonly value: string;
}

export type SentBody =
  | { readonly kind: 'text'; readonly type: string; readonly text: string }
  /** Text with a secret, which code samples read from standard input. */
  | { readonly kind: 'input'; readonly type: string; readonly text: string }
  /** Fields of an HTML form. */
  | { readonly kind: 'form'; readonly fields: readonly Field[] };

export interface FilledIn {
  /** Values in the order of the operation's parameters; '' is not sent. */
  readonly parameters: readonly string[];
  /** Media type of the response. */
  readonly accept: string;
  readonly body?: SentBody | undefined;
  readonly withToken: boolean;
}

export interface HTTPRequest {
  readonly method: string;
  /** Path and query; starts with a slash. */
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: SentBody | undefined;
  readonly withToken: boolean;
  /** True if the response may not end by itself. */
  readonly isStream: boolean;
}

/** Error for a parameter whose value cannot be sent. */
export class Unsendable extends Error {
  /** Index of the parameter. */
  readonly index: number;

  constructor(message: string, index: number) {
    super(message);
    this.index = index;
  }
}

const endless = new Set(['text/event-stream', 'application/x-ndjson', 'application/jsonl']);
const isTrue = (text: string | undefined): boolean => text === 'true' || text === '1';

/** Returns the request of a filled-in form. Throws Unsendable. */
export function requestOf(operation: ShownOperation, { parameters, accept, body, withToken }: FilledIn): HTTPRequest {
  const given = operation.parameters.map((parameter, index) => [parameter, parameters[index] ?? '', index] as const);
  const sent = (location: ShownParameter['in']): readonly (readonly [string, string])[] =>
    given.filter((one) => one[0].in === location && one[1] !== '').map(([{ name }, value]) => [name, value]);
  let { path } = operation;
  for (const [parameter, value, index] of given.filter(([one]) => one.in === 'path')) {
    if (value === '') throw new Unsendable(`${parameter.name}: enter a value; it is part of the path`, index);
    // Browsers would remove the segments `.` and `..`, and request another path.
    if (value === '.' || value === '..')
      throw new Unsendable(`${parameter.name}: "${value}" cannot be sent in a path`, index);
    // encodeURIComponent throws for half of a surrogate pair.
    if (!value.isWellFormed()) throw new Unsendable(`${parameter.name}: contains an incomplete character`, index);
    path = path.replace(`{${parameter.name}}`, () => encodeURIComponent(value));
  }
  const query = new URLSearchParams(sent('query').map(([name, value]): [string, string] => [name, value]));
  return {
    method: operation.method,
    path: query.size === 0 ? path : `${path}?${query.toString()}`,
    headers: [
      ...(accept === '' ? [] : [['Accept', accept] as const]),
      ...sent('header'),
      ...(body === undefined ? [] : [['Content-Type', body.kind === 'form' ? formType : body.type] as const]),
    ],
    body,
    withToken,
    isStream: endless.has(accept) || ['watch', 'follow'].some((name) => isTrue(query.get(name) ?? undefined)),
  };
}

export const formType = 'application/x-www-form-urlencoded';

/** Encodes the body. */
export function bytesOf(body: SentBody): string {
  if (body.kind !== 'form') return body.text;
  return new URLSearchParams(body.fields.map(({ name, value }): [string, string] => [name, value])).toString();
}

/** Returns whether a value is secret, and therefore hidden on the screen and kept out of code samples. */
export const isSecret = (name: string, format?: unknown): boolean =>
  format === 'password' || /(?:password|secret|token)$/.test(name);
