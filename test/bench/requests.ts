/** Requests as sent on the wire, and their expected responses. */
import { gunzipSync } from 'node:zlib';
import { nodeName } from '../../hack/cluster/node.ts';
import type { ParsedResponse } from './response-reader.ts';
import { placeholder } from './paths.ts';

export interface Expected {
  /** Number of items in the response. */
  readonly items?: number;
  /** Names of the items in order. */
  readonly names?: readonly string[];
  /** Total number of items before paging. */
  readonly total?: number;
  /**
   * Text that the name of every item contains. `of` is the number of nodes, and `total` the number of nodes whose name
   * contains the text.
   */
  readonly contains?: string;
  readonly of?: number;
  /** Name of the object in the response. */
  readonly name?: string;
  /** Text that the body contains. */
  readonly text?: string;
  readonly gzip?: boolean;
  /** Size of the body as sent, if known. */
  readonly bytes?: number;
  /** Status; 200 by default. */
  readonly status?: number;
}

export interface Request {
  /** The whole request as latin1. */
  readonly text: string;
  readonly expected: Expected;
}

/** Returns a request as text, with its expected response. `form` contains the fields of a form body. */
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

/** Replaces the placeholder by a number that no earlier request had. */
export function numbered({ text, expected }: Request, number: number): Request {
  if (!text.includes(placeholder)) return { text, expected };
  const digits = String(number % 100_000); // Numbers of at most five digits occur in the names of some nodes.
  const { contains, ...rest } = expected;
  return {
    text: text.replace(placeholder, digits),
    expected: contains === undefined ? rest : { ...rest, contains: digits },
  };
}

/** Returns the problem in the head of a response; undefined if there is none. */
function problemOfHead({ status, bytes, gzip }: ParsedResponse, expected: Expected): string | undefined {
  if (status !== (expected.status ?? 200)) return `status ${status}`;
  if (gzip !== (expected.gzip ?? false)) return gzip ? 'unrequested gzip' : 'no gzip';
  return bytes === (expected.bytes ?? bytes) ? undefined : `${bytes} bytes instead of ${expected.bytes}`;
}

/** Returns the problem of a response; undefined if there is none. The body is checked only if it was kept. */
export function problemOf(response: ParsedResponse, expected: Expected): string | undefined {
  const { body } = response;
  const problem = problemOfHead(response, expected);
  if (body === undefined || problem !== undefined)
    return problem === undefined || body === undefined
      ? problem
      : `${problem}: ${body.toString('utf8', 0, 300).trim()}`;
  const whole = response.gzip ? gunzipSync(body) : body;
  if (whole.length > maxParsed) return problemOfLongList(whole, expected);
  const text = whole.toString('utf8');
  if (expected.text !== undefined) return text.includes(expected.text) ? undefined : `no ${expected.text} in the body`;
  const { items, names, total, contains, name } = expected;
  if ((items ?? names ?? total ?? contains ?? name) === undefined) return undefined; // The body may not be JSON.
  return problemOfJson(JSON.parse(text) as Json, expected);
}

interface Json {
  readonly metadata?: { readonly name?: string };
  readonly items?: readonly { readonly metadata: { readonly name: string } }[];
  readonly totalItems?: number;
}

const differs = (what: string, actual: unknown, wanted: string | number | undefined): string | undefined =>
  wanted === undefined || actual === wanted ? undefined : `${what} ${String(actual)} instead of ${wanted}`;

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

/**
 * Maximum bytes of a body that is parsed. V8 does not support strings of more than 512 MB, and parsing a shorter body
 * can take as long as many requests.
 */
const maxParsed = 1e8;
/** Text that occurs once in the JSON of each node. */
const onceANode = '"nodeInfo":{';

function problemOfLongList(body: Buffer, { items }: Expected): string | undefined {
  let found = 0;
  for (let at = body.indexOf(onceANode); at >= 0; at = body.indexOf(onceANode, at + 1)) found++;
  return items === undefined || found === items ? undefined : `${found} items instead of ${items}`;
}
