/** Maintains the sort orders that list requests use. */
import type { Change } from './history.ts';
import type { StoredObject } from './stored-object.ts';

export type Compare<F> = (a: StoredObject<F>, b: StoredObject<F>) => number;

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Compares by name, then by namespace: the order by name in all namespaces. */
export const byName: Compare<unknown> = (a, b) => compareText(a.name, b.name) || compareText(a.namespace, b.namespace);

export type OrderName = 'name' | 'newest' | 'oldest';

export const orders: Readonly<Record<OrderName, Compare<unknown>>> = {
  name: byName,
  newest: (a, b) => b.createdAt - a.createdAt || byName(a, b),
  oldest: (a, b) => a.createdAt - b.createdAt || byName(a, b),
};

/** Returns the index of an object in a sorted list, or the index at which to insert it. */
export function indexIn<F>(sorted: readonly StoredObject<F>[], object: StoredObject<F>, compare: Compare<F>): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(sorted[middle] as StoredObject<F>, object) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Applies a change to a sorted list. `before` and `after` are the versions of the object; a version that the list must
 * not contain is undefined.
 */
export function follow<F>(
  sorted: StoredObject<F>[],
  compare: Compare<F>,
  before: StoredObject<F> | undefined,
  after: StoredObject<F> | undefined,
): void {
  if (before !== undefined) {
    const index = indexIn(sorted, before, compare);
    if (after !== undefined && compare(before, after) === 0) {
      sorted[index] = after;
      return;
    }
    sorted.splice(index, 1);
  }
  if (after !== undefined) sorted.splice(indexIn(sorted, after, compare), 0, after);
}

/** Returns a sorted list in which the objects `after` replace the objects `before`. */
export const withReplaced = <F>(
  sorted: readonly StoredObject<F>[],
  compare: Compare<F>,
  before: ReadonlySet<StoredObject<F> | undefined>,
  after: readonly (StoredObject<F> | undefined)[],
): StoredObject<F>[] =>
  sorted
    .filter((object) => !before.has(object))
    .concat(after.filter((object) => object !== undefined).toSorted(compare))
    // The sort merges two sorted runs, which is fast.
    .toSorted(compare);

/** Returns the object after a change; undefined for a deletion. */
export const stateAfter = <F>({ type, object }: Change<F>): StoredObject<F> | undefined =>
  type === 'DELETED' ? undefined : object;
