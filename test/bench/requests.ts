/** Requests as they go over the wire, and what must come back. */
import { gunzipSync } from 'node:zlib';
import type { Answer } from './answer-reader.ts';

export interface Expected {
  /** How many items the list has. */
  readonly items?: number;
  /** The name of the object. */
  readonly name?: string;
  /** What stands somewhere in the body. */
  readonly text?: string;
  readonly gzip?: boolean;
  /** The size of the body as sent, where it is known. */
  readonly bytes?: number;
  /** 200 unless stated. */
  readonly status?: number;
}

export interface Request {
  /** All of it, as latin1. */
  readonly text: string;
  readonly expected: Expected;
}

/** A body is a form. */
export function request(
  path: string,
  expected: Expected,
  { token, form }: { token?: string | undefined; form?: Readonly<Record<string, string>> } = {},
): Request {
  const body = form === undefined ? '' : new URLSearchParams(form).toString();
  const lines = [
    `${form === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`,
    'Host: localhost',
    'User-Agent: bench',
    'Accept: application/json',
    ...(expected.gzip === true ? ['Accept-Encoding: gzip'] : []),
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(form === undefined
      ? []
      : ['Content-Type: application/x-www-form-urlencoded', `Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  return { text: `${lines.join('\r\n')}\r\n\r\n${body}`, expected };
}

/** What the head of an answer tells of it being wrong. */
function problemOfHead({ status, bytes, gzip }: Answer, expected: Expected): string | undefined {
  if (status !== (expected.status ?? 200)) return `status ${status}`;
  if (gzip !== (expected.gzip ?? false)) return gzip ? 'gzip, not asked for' : 'no gzip';
  return bytes === (expected.bytes ?? bytes) ? undefined : `${bytes} bytes instead of ${expected.bytes}`;
}

/** What is wrong with an answer; undefined if nothing is. Only of one whose body was kept is the body looked at. */
export function problemOf(answer: Answer, expected: Expected): string | undefined {
  const { body } = answer;
  const problem = problemOfHead(answer, expected);
  if (body === undefined || problem !== undefined)
    return problem === undefined || body === undefined
      ? problem
      : `${problem}: ${body.toString('utf8', 0, 300).trim()}`;
  const text = (answer.gzip ? gunzipSync(body) : body).toString('utf8');
  if (expected.text !== undefined && !text.includes(expected.text)) return `no ${expected.text} in the body`;
  if (expected.items === undefined && expected.name === undefined) return undefined;
  const { items, metadata } = JSON.parse(text) as { items?: unknown[]; metadata?: { name?: string } };
  if (expected.items !== undefined && items?.length !== expected.items)
    return `${items?.length} items instead of ${expected.items}`;
  if (expected.name !== undefined && metadata?.name !== expected.name)
    return `the object ${metadata?.name} instead of ${expected.name}`;
  return undefined;
}
