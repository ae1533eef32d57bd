import { deflateFragment, gzipOf, type Fragment } from '../http/gzip.ts';
import type { StoredObject } from '../kube/stored-object.ts';
import type { View } from './views.ts';

/** A group is deflated as one, when it has so many bytes; when one of its objects changes it is deflated anew, and not the others. */
const groupSize = 64 * 1024;
/** So many are deflated at once, each in a thread. */
const atOnce = 2;

interface Group<F> {
  readonly objects: readonly StoredObject<F>[];
  readonly fragment: Promise<Fragment>;
}

/**
 * Lists gzipped from fragments, which are kept for as long as their objects are what they were: a list costs what has changed since
 * the last one. For lists of all objects in one order.
 */
export class PreparedLists<F> {
  readonly #view: View<F>;
  /** By their first object. */
  readonly #groups = new WeakMap<StoredObject<F>, Group<F>>();

  constructor(view: View<F>) {
    this.#view = view;
  }

  /** The pieces of a gzip member; the rest of the list's pieces is `frame`. */
  async gzip(objects: readonly StoredObject<F>[], [head, tail]: readonly [Buffer, Buffer]): Promise<Buffer[]> {
    // The last one has no comma behind it.
    const last = objects.length - 1;
    const fragments: Promise<Fragment>[] = [];
    const under: Promise<unknown>[] = [];
    for (let start = 0; start < last;) {
      let group = this.#known(objects, start, last);
      if (group === undefined) {
        group = this.#begin(objects.slice(start, this.#endOf(objects, start, last)));
        under.push(group.fragment);
        if (under.length > atOnce) await under.shift();
      }
      fragments.push(group.fragment);
      start += group.objects.length;
    }
    const end = last < 0 ? [] : this.#view.object(objects[last] as StoredObject<F>);
    return gzipOf([head, ...(await Promise.all(fragments)), ...end, tail]);
  }

  /** The group that stands there, if it is still what it was. */
  #known(objects: readonly StoredObject<F>[], start: number, last: number): Group<F> | undefined {
    const group = this.#groups.get(objects[start] as StoredObject<F>);
    if (group === undefined || start + group.objects.length > last) return undefined;
    return group.objects.every((object, index) => objects[start + index] === object) ? group : undefined;
  }

  #begin(objects: readonly StoredObject<F>[]): Group<F> {
    const first = objects[0] as StoredObject<F>;
    const fragment = deflateFragment(Buffer.concat(this.#view.items(objects)));
    fragment.catch(() => this.#groups.delete(first));
    const group = { objects, fragment };
    this.#groups.set(first, group);
    return group;
  }

  /** A group ends where it is large enough, or where one begins that may still be what it was. */
  #endOf(objects: readonly StoredObject<F>[], start: number, last: number): number {
    let size = 0;
    let end = start;
    for (; end < last; end += 1) {
      const object = objects[end] as StoredObject<F>;
      if (size >= groupSize || (size >= groupSize / 2 && this.#groups.has(object))) break;
      size += object.length;
    }
    return end;
  }
}
