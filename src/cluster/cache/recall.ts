/**
 * Whether a history reaches further back than the list that it begins with. A resourceVersion counts the changes of every resource: a
 * client that comes from another replica, whose copy of a quiet resource stands at an older one, has missed nothing. kube-apiserver
 * knows, and tells whoever begins a watch there.
 */
import type { Logger } from '../../runtime/logger.ts';
import type { KubeClient } from '../client/client.ts';
import { sleep, type Clock } from '../../runtime/time.ts';
import type { History, Recalled } from './history.ts';
import { isKubeError } from '../client/kube-error.ts';
import { parseWatchEvent } from './kube-responses.ts';
import { ListWatch } from './list-watch.ts';
import { hurriedSeconds } from './reflector.ts';

export interface RecallOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  /** Of the collection, such as /api/v1/nodes. */
  readonly path: string;
  readonly history: Pick<History<unknown>, 'oldestPosition' | 'since' | 'isInDoubt' | 'recall'>;
  /** Makes kube-apiserver find out how far the resource is, as its bookmarks tell no more than that. */
  readonly latest: () => Promise<unknown>;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Of a question, and of who waits for an answer, in milliseconds. */
const longestWait = 4_000;

/**
 * Returns what asks until the store need not be doubted at a resourceVersion, or nobody can tell, or the signal is aborted. There is one
 * question at a time, whoever asks.
 */
export function createRecall({
  client,
  path,
  history,
  latest,
  log,
  clock,
}: RecallOptions): (resourceVersion: number, signal: AbortSignal) => Promise<void> {
  let asking: Promise<boolean> | undefined;
  /** That those stand at who came meanwhile. */
  let oldest = Infinity;

  /** What happened after a resourceVersion, up to where the history begins; undefined if nobody can tell. */
  async function changesAfter(from: number, begin: number, signal: AbortSignal): Promise<Recalled | undefined> {
    let floor = 0;
    try {
      await latest();
      const requests = new ListWatch({ client, path, metadataOnly: true, clock, maxSilence: longestWait, signal });
      const query = { resourceVersion: from, timeoutSeconds: hurriedSeconds };
      const isReached = await requests.watch(query, async (events) => {
        for await (const event of events) {
          const { type, object } = parseWatchEvent(event);
          const version = Number(object.metadata.resourceVersion);
          if (type !== 'BOOKMARK') {
            if (!(version > from)) throw new Error('a watch reports a change from before its resourceVersion');
            if (version <= begin) floor = version;
          }
          if (version >= begin) return true;
        }
        return false;
      });
      if (isReached) return { floor, since: Math.max(from, floor) };
    } catch (error) {
      if (isKubeError(error, 410)) floor = Math.max(floor, from + 1);
      else log.info('the history before the first list is unknown', { path, resourceVersion: from, error });
    }
    return floor === 0 ? undefined : { floor, since: begin };
  }

  /** False if nothing was found out. */
  async function ask(from: number): Promise<boolean> {
    const { oldestPosition, since } = history;
    const limit = new AbortController();
    const cancel = clock.after(longestWait, () => limit.abort());
    const recalled = await changesAfter(from, since, limit.signal);
    cancel();
    asking = undefined;
    if (recalled !== undefined) history.recall(oldestPosition, recalled);
    return recalled !== undefined;
  }

  function answer(resourceVersion: number): Promise<boolean> {
    if (asking === undefined) {
      asking = ask(history.isInDoubt(oldest) ? Math.min(oldest, resourceVersion) : resourceVersion);
      oldest = Infinity;
    } else oldest = Math.min(oldest, resourceVersion);
    return asking;
  }

  return async (resourceVersion, signal) => {
    const over = new AbortController();
    const late = sleep(clock, longestWait, AbortSignal.any([signal, over.signal])).then(() => false);
    while (history.isInDoubt(resourceVersion) && (await Promise.race([answer(resourceVersion), late])));
    over.abort();
  };
}
