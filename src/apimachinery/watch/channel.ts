import { framed, type Framing } from '../../http/response/streamed-body.ts';
import type { Change } from '../../cluster/cache/history.ts';
import { all, type ObjectFilter } from '../../cluster/cache/selection.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import type { View } from '../list/views.ts';
import { frame, seen, type Format } from './frames.ts';
import type { Watch } from './watch.ts';

/** What watches that share their frames have in common. */
export interface ChannelOptions<F> {
  readonly view: View<F>;
  readonly filters: readonly ObjectFilter<F>[];
  readonly format: Format;
  readonly framing: Framing;
  /** Identifies the content of the channel; undefined if no other watch can join. */
  readonly key: string | undefined;
}

/** Watches that see the same: what changes is put into bytes once for all of them. */
export class Channel<F> {
  readonly options: ChannelOptions<F>;
  readonly watches: Set<Watch<F>> = new Set();
  /** Nothing is framed for all: its watches work in the lanes of their users. */
  readonly isInLanes: boolean;
  /** Is an object, as it is, to be seen? */
  readonly passes: (object: StoredObject<F>) => boolean;
  #bookmark: { readonly resourceVersion: number; readonly part: Buffer } | undefined;

  constructor(options: ChannelOptions<F>) {
    this.options = options;
    this.isInLanes = options.filters.some(({ isLookUp }) => isLookUp === true);
    this.passes = all(options.filters);
  }

  /** What these changes are to its watches; undefined if nothing. */
  part(changes: readonly Change<F>[]): Buffer | undefined {
    const { view, format, framing } = this.options;
    const pieces: Buffer[] = [];
    for (const change of changes) {
      const shown = seen(change, this.passes);
      if (shown !== undefined)
        pieces.push(...frame(format, shown.type, view.object(shown.object), change.resourceVersion));
    }
    return pieces.length === 0 ? undefined : framed(framing, pieces);
  }

  /** The BOOKMARK of a resourceVersion. */
  bookmark(resourceVersion: number): Buffer {
    if (this.#bookmark?.resourceVersion !== resourceVersion) {
      const { view, format, framing } = this.options;
      const pieces = frame(format, 'BOOKMARK', view.bookmark(resourceVersion, false), resourceVersion);
      this.#bookmark = { resourceVersion, part: framed(framing, pieces) };
    }
    return this.#bookmark.part;
  }
}
