/** Builds discovery, the index of granted namespaces and the catalogue of cached resources. */
import { cacheFigures } from '../../runtime/bounded-cache.ts';
import { gauge, gauges, registerResource } from '../../runtime/metrics.ts';
import type { Clock } from '../../runtime/time.ts';
import type { ClusterParts } from '../build.ts';
import { Discovery } from '../discovery.ts';
import { OwnRights } from '../own-rights.ts';
import type { CacheFigures } from './cached-resource.ts';
import { Catalogue } from './catalogue.ts';
import { GrantedNamespaces } from './granted-namespaces.ts';
import type { Kind } from './resource.ts';

export interface CatalogueParts {
  readonly discovery: Discovery;
  readonly granted: GrantedNamespaces;
  readonly catalogue: Catalogue;
}

export function buildCatalogue(
  { client, live, lifecycle, clock, log }: ClusterParts,
  kinds: readonly Kind<unknown>[],
): CatalogueParts {
  const discovery = lifecycle.add('discovery', new Discovery({ client, clock, log }));
  const granted = lifecycle.add('granted-namespaces', new GrantedNamespaces({ client, clock, log }));
  const rights = new OwnRights({ client, clock });
  const limits = () => live.value.cache;
  const catalogue = lifecycle.add(
    'catalogue',
    new Catalogue({ client, discovery, rights, limits, kinds, registerResource, clock, log }),
  );
  registerMetrics(catalogue, clock, () => limits().maxBytes);
  return { discovery, granted, catalogue };
}

function registerMetrics(catalogue: Catalogue, clock: Clock, maxBytes: () => number): void {
  const figures = (read: (figures: CacheFigures) => number) => () =>
    [...catalogue.figures()].map(([resource, one]) => [resource, read(one)] as const);
  gauges(
    'store_objects',
    'Cached objects of a resource.',
    'resource',
    figures(({ objects }) => objects),
  );
  gauges(
    'store_bytes',
    'Bytes of the cached objects of a resource, outside the V8 heap.',
    'resource',
    figures(({ bytes }) => bytes),
  );
  gauges(
    'store_age_seconds',
    'Time since the last sign of life of the watch of a resource.',
    'resource',
    figures(({ lastSignOfLife }) => (clock.now() - lastSignOfLife) / 1_000),
  );
  gauge('store_limit_bytes', 'Maximum bytes of all cached resources together.', maxBytes);
  gauges('cache_entries', 'Entries of a cache, limiter or queue whose keys come from requests.', 'name', () =>
    [...cacheFigures()].map(([name, { entries }]) => [name, entries] as const),
  );
  gauges(
    'cache_bytes',
    'Estimated bytes of the entries of a cache, limiter or queue whose keys come from requests.',
    'name',
    () => [...cacheFigures()].map(([name, { bytes }]) => [name, bytes] as const),
  );
}
