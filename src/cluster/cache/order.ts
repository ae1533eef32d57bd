/** Objects in the orders that lists ask for. */
import type { Change } from './history.ts';
import type { StoredObject } from './stored-object.ts';

export type Compare<F> = (a: StoredObject<F>, b: StoredObject<F>) => number;

const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** By name, within one name by namespace: the order of names in all namespaces. */
export const byName: Compare<unknown> = (a, b) => text(a.name, b.name) || text(a.namespace, b.namespace);

export type OrderName = 'name' | 'newest' | 'oldest';

export const orders: Readonly<Record<OrderName, Compare<unknown>>> = {
  name: byName,
  newest: (a, b) => b.createdAt - a.createdAt || byName(a, b),
  oldest: (a, b) => a.createdAt - b.createdAt || byName(a, b),
};

/** Where this object stands, or would have to stand, in a sorted list. */
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

/** Takes a change over into a sorted list. `before` and `after`: which of its states belong there. */
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

/** A sorted list in which many others stand in the place of many. */
export const exchanged = <F>(
  sorted: readonly StoredObject<F>[],
  compare: Compare<F>,
  before: ReadonlySet<StoredObject<F> | undefined>,
  after: readonly (StoredObject<F> | undefined)[],
): StoredObject<F>[] =>
  sorted
    .filter((object) => !before.has(object))
    .concat(after.filter((object) => object !== undefined).toSorted(compare))
    // Two rows that are sorted are merged.
    .toSorted(compare);

/** The state that a change leaves behind. */
export const stateAfter = <F>({ type, object }: Change<F>): StoredObject<F> | undefined =>
  type === 'DELETED' ? undefined : object;
