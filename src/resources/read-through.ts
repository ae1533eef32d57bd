/**
 * What is not copied (docs/api.md) is asked for as the caller, each time, and then filtered, ordered and paged by the same list language.
 * A watch is passed on.
 */
import { holderOf } from '../auth/user.ts';
import { Slots } from '../runtime/slots.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { Store } from '../cluster/cache/store.ts';
import type { ListMemory } from '../cluster/catalogue/list-memory.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';
import { demandReached } from '../apimachinery/reading.ts';
import { parseOldest } from '../apimachinery/list/list-options.ts';
import { parseListQuery, parseObjectQuery } from '../apimachinery/list/query.ts';
import { ResourceResponses } from '../apimachinery/list/resource-responses.ts';
import type { ReadAccess } from '../apimachinery/visible-namespaces.ts';
import type { KapisHandlers, Serve } from './kapis-handler.ts';
import { passWatch } from './passed-watch.ts';
import { UncachedResource } from './uncached-resource.ts';

/** A watch of what is not cached has a connection to kube-apiserver of its own. */
export const passedWatches = (): Slots =>
  new Slots({ what: 'watches of resources that are not cached', total: 100, perUser: 25 });

export interface ReadThroughOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  readonly access: ReadAccess;
  readonly memory: ListMemory;
  /** Shared by all resources. */
  readonly watches: Slots;
}

export function readThroughHandlers(
  definition: ResourceDefinition<unknown>,
  { client, access, memory, watches }: ReadThroughOptions,
): KapisHandlers {
  const resource = new UncachedResource(definition, client);
  const responses = new ResourceResponses(definition);

  const watch: Serve = async (judged, ...request) => {
    const freeSlot = watches.take(holderOf(request[2].user));
    try {
      await passWatch(resource, access, responses, judged, ...request);
    } finally {
      freeSlot();
    }
  };

  return {
    async collection(judged, req, res, context) {
      if (context.info.verb === 'watch') return watch(judged, req, res, context);
      const query = parseListQuery(context.query, definition);
      const oldest = parseOldest(context.query);
      const share = memory.share(holderOf(context.user), definition.underlying.resource);
      try {
        const { objects, resourceVersion } = await resource.list(context, judged.visible, share);
        demandReached(oldest, resourceVersion);
        const once = new Store<unknown>();
        once.replace(objects, resourceVersion);
        const filters = [...judged.selected, ...query.filters];
        await responses.list(req, res, context, { ...query, filters }, { store: once, lasting: false });
      } finally {
        share.release();
      }
    },
    async object(judged, req, res, context) {
      if (context.info.verb === 'watch') return watch(judged, req, res, context);
      const query = parseObjectQuery(context.query);
      await responses.object(req, res, context, query, await resource.get(context));
    },
  };
}
