import { deflateFragment, gzipOf, joinFragments, type Fragment } from '../../http/response/gzip.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import { mapConcurrent } from '../../runtime/promises.ts';
import { Runs } from './runs.ts';
import type { View } from './views.ts';

/** Objects of so many bytes are deflated together: anew when one of them changes, and not the others. */
const groupSize = 64 * 1024;
/** So many deflated bytes lie in one piece: a list of few pieces is made and sent in little time, and leaves little garbage. */
const pieceSize = 64 * 1024;
/** Groups of one list that are deflated at once, each in a thread. */
const atOnce = 3;

interface Group<F> {
  readonly objects: readonly StoredObject<F>[];
  fragment: Fragment | undefined;
  deflating: Promise<void> | undefined;
}

/**
 * Lists gzipped from fragments, which are kept for as long as their objects are what they were: a list costs what has changed since
 * the last one. For lists of all objects in one order.
 */
export class PreparedLists<F> {
  readonly #view: View<F>;
  readonly #groups = new Runs<StoredObject<F>, Group<F>>({
    sizeOf: ({ length }) => length,
    size: groupSize,
    make: (objects) => ({ objects, fragment: undefined, deflating: undefined }),
  });
  readonly #pieces = new Runs<Fragment, Fragment>({
    sizeOf: ({ deflated }) => deflated.length,
    size: pieceSize,
    make: joinFragments,
  });

  constructor(view: View<F>) {
    this.#view = view;
  }

  /** The pieces of a gzip member; the rest of the list's pieces is `frame`. */
  async gzip(objects: readonly StoredObject<F>[], [head, tail]: readonly [Buffer, Buffer]): Promise<Buffer[]> {
    // The last one has no comma behind it.
    const last = objects.length - 1;
    const groups = this.#groups.of(objects, last);
    const missing = groups.filter(({ fragment }) => fragment === undefined);
    if (missing.length > 0) await mapConcurrent(missing, atOnce, (group) => this.#deflate(group));
    const fragments = groups.map(({ fragment }) => fragment as Fragment);
    const end = last < 0 ? [] : this.#view.object(objects[last] as StoredObject<F>);
    return gzipOf([head, ...this.#pieces.of(fragments), ...end, tail]);
  }

  /** Lists that are made at the same time share the work. */
  async #deflate(group: Group<F>): Promise<void> {
    if (group.fragment === undefined) await (group.deflating ??= this.#fill(group));
  }

  async #fill(group: Group<F>): Promise<void> {
    try {
      group.fragment = await deflateFragment(Buffer.concat(this.#view.items.bytesOf(group.objects)));
    } finally {
      // Where that failed, whoever comes next tries again.
      group.deflating = undefined;
    }
  }
}
