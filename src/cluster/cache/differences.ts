/** Differences between the objects of a store and the objects of a later list. */
import type { Change } from './history.ts';
import { namespacedName } from '../client/kube-object.ts';
import type { StoredObject } from './stored-object.ts';

/**
 * Returns the changes that turn the objects of a store, by key, into the items of a list, ordered by resourceVersion;
 * undefined if there are more than `max`. `since` and `until` are the resourceVersions of the objects and of the list.
 */
export function findDifferences<F>(
  objects: ReadonlyMap<string, StoredObject<F>>,
  items: readonly StoredObject<F>[],
  { since, until, max }: { readonly since: number; readonly until: number; readonly max: number },
): Change<F>[] | undefined {
  const present = new Set(items.map(namespacedName));
  const changes: Change<F>[] = [];
  const removed: Removed<F>[] = [];
  for (const [key, previous] of objects) if (!present.has(key)) removed.push({ previous, latest: until });
  for (const object of items) {
    const previous = objects.get(namespacedName(object));
    const version = object.resourceVersion;
    if (previous === undefined) changes.push({ type: 'ADDED', resourceVersion: version, object, previous });
    else if (previous.uid !== object.uid) {
      removed.push({ previous, latest: version - 1 });
      changes.push({ type: 'ADDED', resourceVersion: version, object, previous: undefined });
    } else if (previous.resourceVersion !== version)
      changes.push({ type: 'MODIFIED', resourceVersion: version, object, previous });
  }
  // Checked before the deletions are created, because each deletion copies the bytes of its object.
  if (changes.length + removed.length > max) return undefined;
  const used = new Set(items.map((object) => object.resourceVersion));
  return changes.concat(deletions(removed, since, used)).toSorted((a, b) => a.resourceVersion - b.resourceVersion);
}

/** An object that was deleted at an unknown resourceVersion up to `latest`. */
interface Removed<F> {
  readonly previous: StoredObject<F>;
  readonly latest: number;
}

/**
 * Returns the deletions of objects that are not in the list, or that another object of the same name has replaced. The
 * real resourceVersions are unknown. Each deletion gets the lowest unused version after `since`, at most `latest`, so
 * that the deletions precede most other changes. A client that has received only some of the changes, and resumes at
 * another replica, may still miss a deletion, because the real order is unknown.
 */
function deletions<F>(removed: readonly Removed<F>[], since: number, used: ReadonlySet<number>): Change<F>[] {
  let unused = since;
  return removed
    .toSorted((a, b) => a.latest - b.latest)
    .map(({ previous, latest }) => {
      do unused += 1;
      while (used.has(unused));
      const resourceVersion = Math.min(unused, latest);
      return {
        type: 'DELETED',
        resourceVersion,
        object: previous.withResourceVersion(resourceVersion),
        previous,
      };
    });
}
