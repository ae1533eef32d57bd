/** Builds discovery, the index of granted namespaces and the catalogue of cached resources. */
import { cacheFigures } from '../../runtime/bounded-cache.ts';
import {
  cacheBytes,
  cacheEntries,
  resources,
  storeAge,
  storeBytes,
  storeLimit,
  storeObjects,
} from '../../runtime/metrics/definitions.ts';
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
    new Catalogue({ client, discovery, rights, limits, kinds, registerResource: resources.add, clock, log }),
  );
  registerMetrics(catalogue, clock, () => limits().maxBytes);
  return { discovery, granted, catalogue };
}

function registerMetrics(catalogue: Catalogue, clock: Clock, maxBytes: () => number): void {
  const figures = (read: (figures: CacheFigures) => number) => () =>
    [...catalogue.figures()].map(([resource, one]) => [{ resource }, read(one)] as const);
  storeObjects.read(figures(({ objects }) => objects));
  storeBytes.read(figures(({ bytes }) => bytes));
  storeAge.read(figures(({ lastSignOfLife }) => (clock.now() - lastSignOfLife) / 1_000));
  storeLimit.read(() => [[{}, maxBytes()]]);
  cacheEntries.read(() => [...cacheFigures()].map(([name, { entries }]) => [{ name }, entries] as const));
  cacheBytes.read(() => [...cacheFigures()].map(([name, { bytes }]) => [{ name }, bytes] as const));
}
