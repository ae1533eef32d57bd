/** Order of a list on /kapis: an order that the store maintains, or an order by the value at a path. */
import { badRequest } from '../../runtime/errors.ts';
import { compareTimes, parseTime, type Time } from '../../runtime/time.ts';
import type { OrderName } from '../../cluster/cache/order.ts';
import { orderByValue, type ObjectOrder } from '../../cluster/cache/selection.ts';
import { memoKeyOf, type StoredObject } from '../../cluster/cache/stored-object.ts';
import { parseFieldPath, scalarAt, type Scalar } from './field-path.ts';

export interface Sorting {
  readonly order: OrderName | ObjectOrder<unknown>;
  /** True if `order` is reversed. */
  readonly reversed: boolean;
}

/** Parses `sortBy` and returns a function from `ascending` to the order. Throws 400. */
export function parseSortBy(text: string): (ascending: boolean) => Sorting {
  if (text === 'name') return (ascending) => ({ order: 'name', reversed: !ascending });
  if (text === 'createTime' || text === 'creationTimestamp')
    return (ascending) => ({ order: ascending ? 'oldest' : 'newest', reversed: false });
  if (!text.startsWith('.'))
    throw badRequest(
      `expected name, createTime, creationTimestamp or a path with a leading dot such as .status.nodeInfo.kubeletVersion, got ${JSON.stringify(text)}`,
    );
  const path = parseFieldPath(text);
  return (ascending) => ({ order: orderBy(path, ascending), reversed: false });
}

type Key =
  | { readonly rank: 0; readonly value: number }
  | { readonly rank: 1; readonly value: Time }
  | { readonly rank: 2; readonly value: string };

const number = /^-?\d+(\.\d+)?$/;

function keyOf(value: Scalar | undefined): Key | undefined {
  if (value === undefined) return undefined;
  const text = String(value);
  if (typeof value === 'number' || number.test(text)) return { rank: 0, value: Number(text) };
  const time = parseTime(text);
  return time === undefined ? { rank: 2, value: text } : { rank: 1, value: time };
}

/**
 * Orders by the value at a path: numbers first, then times, then text by code point. Objects without a value come last
 * in both directions.
 */
function orderBy(path: readonly string[], ascending: boolean): ObjectOrder<unknown> {
  const direction = ascending ? 1 : -1;
  const field = scalarAt(path);
  const text = JSON.stringify(path);
  const find = (object: StoredObject<unknown>): Key | undefined => keyOf(field(object));
  const memoKey = memoKeyOf(`sorted by ${text}`);
  const keyIn = (object: StoredObject<unknown>): Key | undefined => object.memoize(memoKey, find);
  const compare = (a: Key | undefined, b: Key | undefined): number =>
    a === undefined || b === undefined
      ? Number(a === undefined) - Number(b === undefined)
      : direction * compareKeys(a, b);
  return orderByValue(`${text} ${direction}`, keyIn, compare);
}

function compareKeys(a: Key, b: Key): number {
  if (a.rank === 0 && b.rank === 0) return a.value - b.value;
  if (a.rank === 1 && b.rank === 1) return compareTimes(a.value, b.value);
  if (a.rank === 2 && b.rank === 2) return byCodePoint(a.value, b.value);
  return a.rank - b.rank;
}

/** Compares by code point. JavaScript compares UTF-16 code units, which puts surrogates before U+E000. */
export function byCodePoint(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1)
    if (a[i] !== b[i]) return (a.codePointAt(i) as number) - (b.codePointAt(i) as number);
  return a.length - b.length;
}
