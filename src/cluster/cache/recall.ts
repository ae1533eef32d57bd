/**
 * Finds out whether a reader misses changes that continues from a resourceVersion in a gap of a history, such as before
 * the first list. A resourceVersion counts the changes of every resource, so another replica may still return an older
 * resourceVersion for a resource that rarely changes. A client that continues from that version has missed nothing. A
 * watch of kube-apiserver from that resourceVersion shows whether there were changes.
 */
import type { Logger } from '../../runtime/logger.ts';
import type { KubeClient } from '../client/client.ts';
import { sleep, type Clock } from '../../runtime/time.ts';
import type { Gap, History, Recalled } from './history.ts';
import { isKubeError } from '../client/kube-error.ts';
import { parseWatchEvent } from './kube-responses.ts';
import { ListWatch } from './list-watch.ts';
import { hurriedSeconds } from './reflector.ts';

export interface RecallOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  /** Path of the collection, such as /api/v1/nodes. */
  readonly path: string;
  readonly history: Pick<History<unknown>, 'gapAt' | 'isInDoubt' | 'recall'>;
  /**
   * Makes kube-apiserver fetch the latest resourceVersion, because bookmarks report only the version in
   * kube-apiserver's own cache.
   */
  readonly latest: () => Promise<unknown>;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Maximum milliseconds that a request takes, and that a caller waits. */
const maxWait = 4_000;

/**
 * Returns a function that finds out whether the history is complete after a resourceVersion. The function queries
 * kube-apiserver until the result is known, a request fails, or the signal is aborted. Callers share requests, of which
 * one is in flight at a time.
 */
export function createRecall({
  client,
  path,
  history,
  latest,
  log,
  clock,
}: RecallOptions): (resourceVersion: number, signal: AbortSignal) => Promise<void> {
  let request: Promise<boolean> | undefined;
  /** Oldest resourceVersion of the callers that arrived during the request. */
  let oldest = Infinity;

  /**
   * Returns information about the changes after `from` up to the version from which the gap is known to contain none;
   * undefined if no information is available.
   */
  async function changesAfter(from: number, { since: to }: Gap, signal: AbortSignal): Promise<Recalled | undefined> {
    let floor = 0;
    try {
      await latest();
      const requests = new ListWatch({ client, path, metadataOnly: true, clock, maxSilence: maxWait, signal });
      const parameters = { resourceVersion: from, timeoutSeconds: hurriedSeconds };
      const isReached = await requests.watch(parameters, async (events) => {
        for await (const event of events) {
          const { type, object } = parseWatchEvent(event);
          const version = Number(object.metadata.resourceVersion);
          if (type !== 'BOOKMARK') {
            if (!(version > from))
              throw new Error('kube-apiserver sent a change older than the resourceVersion of the watch');
            if (version <= to) floor = version;
          }
          if (version >= to) return true;
        }
        return false;
      });
      if (isReached) return { floor, since: Math.max(from, floor) };
    } catch (error) {
      if (isKubeError(error, 410)) floor = Math.max(floor, from + 1);
      else log.info('changes before a list are unknown', { path, resourceVersion: from, error });
    }
    return floor === 0 ? undefined : { floor, since: to };
  }

  /** Queries kube-apiserver. Returns false if kube-apiserver did not provide the information. */
  async function query(from: number): Promise<boolean> {
    // The version is in doubt, so it is in a gap.
    const gap = history.gapAt(from) as Gap;
    const limit = new AbortController();
    const cancel = clock.after(maxWait, () => limit.abort());
    const recalled = await changesAfter(from, gap, limit.signal);
    cancel();
    request = undefined;
    if (recalled !== undefined) history.recall(gap, recalled);
    return recalled !== undefined;
  }

  function shareQuery(resourceVersion: number): Promise<boolean> {
    if (request === undefined) {
      request = query(history.isInDoubt(oldest) ? Math.min(oldest, resourceVersion) : resourceVersion);
      oldest = Infinity;
    } else oldest = Math.min(oldest, resourceVersion);
    return request;
  }

  return async (resourceVersion, signal) => {
    const settled = new AbortController();
    const late = sleep(clock, maxWait, AbortSignal.any([signal, settled.signal])).then(() => false);
    while (history.isInDoubt(resourceVersion) && (await Promise.race([shareQuery(resourceVersion), late])));
    settled.abort();
  };
}
