import { framed, type Framing } from '../../http/response/streamed-body.ts';
import type { Change } from '../../cluster/cache/history.ts';
import { all, type ObjectFilter } from '../../cluster/cache/selection.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import type { View } from '../list/views.ts';
import { frame, visibleEvent, type Format } from './frames.ts';
import type { Watch } from './watch.ts';

/** Properties that watches must have in common to share frames. */
export interface ChannelOptions<F> {
  readonly view: View<F>;
  readonly filters: readonly ObjectFilter<F>[];
  readonly format: Format;
  readonly framing: Framing;
  /** Identifies the content of the channel; undefined if no other watch can join. */
  readonly key: string | undefined;
}

/** Watches that see the same events. A change is encoded once for all these watches. */
export class Channel<F> {
  readonly options: ChannelOptions<F>;
  readonly watches: Set<Watch<F>> = new Set();
  /** True if the watches encode changes in the lanes of their users. The channel then encodes nothing. */
  readonly isInLanes: boolean;
  /** Returns true if the watches see this version of the object. */
  readonly passes: (object: StoredObject<F>) => boolean;
  #bookmark: { readonly resourceVersion: number; readonly part: Buffer } | undefined;

  constructor(options: ChannelOptions<F>) {
    this.options = options;
    this.isInLanes = options.filters.some(({ isLookUp }) => isLookUp === true);
    this.passes = all(options.filters);
  }

  /** Encodes the changes for the watches. Returns undefined if the watches see none of the changes. */
  part(changes: readonly Change<F>[]): Buffer | undefined {
    const { view, format, framing } = this.options;
    const pieces: Buffer[] = [];
    for (const change of changes) {
      const shown = visibleEvent(change, this.passes);
      if (shown !== undefined)
        pieces.push(...frame(format, shown.type, view.object(shown.object), change.resourceVersion));
    }
    return pieces.length === 0 ? undefined : framed(framing, pieces);
  }

  /** Returns the BOOKMARK of a resourceVersion. */
  bookmark(resourceVersion: number): Buffer {
    if (this.#bookmark?.resourceVersion !== resourceVersion) {
      const { view, format, framing } = this.options;
      const pieces = frame(format, 'BOOKMARK', view.bookmark(resourceVersion, false), resourceVersion);
      this.#bookmark = { resourceVersion, part: framed(framing, pieces) };
    }
    return this.#bookmark.part;
  }
}
