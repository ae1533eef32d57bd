import { deflateFragment, gzipOf, joinFragments, type Fragment } from '../../http/response/gzip.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import { mapConcurrent } from '../../runtime/promises.ts';
import { Runs } from './runs.ts';
import type { View } from './views.ts';

/** Number of bytes of objects that are deflated together. When an object changes, only its group is deflated again. */
const groupSize = 64 * 1024;
/**
 * Number of deflated bytes that are joined into one piece. A list in few pieces is built and sent fast, and leaves
 * little garbage.
 */
const pieceSize = 64 * 1024;
/** Groups of one list that are deflated concurrently, each in a thread. */
const concurrency = 3;

interface Group<F> {
  readonly objects: readonly StoredObject<F>[];
  fragment: Fragment | undefined;
  deflating: Promise<void> | undefined;
}

/**
 * Builds gzipped lists of all objects in one order from cached fragments. A fragment is cached until one of its objects
 * changes, so a list costs only the work for objects that have changed since the last list.
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

  /** Returns the pieces of a gzip member. `head` and `tail` are the frame of the list. */
  async gzip(objects: readonly StoredObject<F>[], [head, tail]: readonly [Buffer, Buffer]): Promise<Buffer[]> {
    // The last object is not part of a group, because no comma follows it.
    const last = objects.length - 1;
    const groups = this.#groups.of(objects, last);
    const missing = groups.filter(({ fragment }) => fragment === undefined);
    if (missing.length > 0) await mapConcurrent(missing, concurrency, (group) => this.#deflate(group));
    const fragments = groups.map(({ fragment }) => fragment as Fragment);
    const end = last < 0 ? [] : this.#view.object(objects[last] as StoredObject<F>);
    return gzipOf([head, ...this.#pieces.of(fragments), ...end, tail]);
  }

  /** Deflates a group once for all lists that are built at the same time. */
  async #deflate(group: Group<F>): Promise<void> {
    if (group.fragment === undefined) await (group.deflating ??= this.#fill(group));
  }

  async #fill(group: Group<F>): Promise<void> {
    try {
      group.fragment = await deflateFragment(Buffer.concat(this.#view.items.bytesOf(group.objects)));
    } finally {
      // The next list tries again after a failure.
      group.deflating = undefined;
    }
  }
}
