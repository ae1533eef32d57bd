/** Requests as they go over the wire, and what must come back. */
import { gunzipSync } from 'node:zlib';
import { nodeName } from '../../hack/cluster/node.ts';
import type { Answer } from './answer-reader.ts';
import { anew } from './paths.ts';

export interface Expected {
  /** How many items the list has. */
  readonly items?: number;
  /** The names of the items, in their order. */
  readonly names?: readonly string[];
  /** How many items there are in all, before paging. */
  readonly total?: number;
  /** All items have it in their names, and `total` counts those of so many nodes that do. */
  readonly contains?: string;
  readonly of?: number;
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

/** With a number where one is to stand that no earlier request had. */
export function numbered({ text, expected }: Request, number: number): Request {
  if (!text.includes(anew)) return { text, expected };
  const digits = String(number % 100_000); // few enough to stand in some names
  const { contains, ...rest } = expected;
  return { text: text.replace(anew, digits), expected: contains === undefined ? rest : { ...rest, contains: digits } };
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
  const whole = answer.gzip ? gunzipSync(body) : body;
  if (whole.length > longestParsed) return problemOfLongList(whole, expected);
  const text = whole.toString('utf8');
  if (expected.text !== undefined) return text.includes(expected.text) ? undefined : `no ${expected.text} in the body`;
  const { items, names, total, contains, name } = expected;
  if ((items ?? names ?? total ?? contains ?? name) === undefined) return undefined; // it need not be JSON
  return problemOfJson(JSON.parse(text) as Json, expected);
}

interface Json {
  readonly metadata?: { readonly name?: string };
  readonly items?: readonly { readonly metadata: { readonly name: string } }[];
  readonly totalItems?: number;
}

const differs = (what: string, got: unknown, wanted: string | number | undefined): string | undefined =>
  wanted === undefined || got === wanted ? undefined : `${what} ${String(got)} instead of ${wanted}`;

function problemOfJson({ items, metadata, totalItems }: Json, expected: Expected): string | undefined {
  const names = items?.map((item) => item.metadata.name) ?? [];
  const { contains, of = 0 } = expected;
  const total =
    contains === undefined
      ? expected.total
      : Array.from({ length: of }, (_, index) => nodeName(index)).filter((name) => name.includes(contains)).length;
  if (contains !== undefined && !names.every((name) => name.includes(contains))) return `a name without ${contains}`;
  return (
    differs('the object', metadata?.name, expected.name) ??
    differs('items:', items?.length, expected.items) ??
    differs('different names:', items && new Set(names).size, items?.length) ??
    differs('totalItems', totalItems, total) ??
    differs('the names', names.join(), expected.names?.join())
  );
}

/** A text of more than 512 MB is none to V8; far below that parsing takes the time of many requests. */
const longestParsed = 1e8;
/** Stands once in each node. */
const onceANode = '"nodeInfo":{';

function problemOfLongList(body: Buffer, { items }: Expected): string | undefined {
  let found = 0;
  for (let at = body.indexOf(onceANode); at >= 0; at = body.indexOf(onceANode, at + 1)) found++;
  return items === undefined || found === items ? undefined : `${found} items instead of ${items}`;
}
