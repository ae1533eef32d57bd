import type { LoggingSettings } from '../../config/log-stores.ts';
import type { Caller, LogStore } from './log-store.ts';
import type { ListPods } from './pods/source.ts';
import type { SecretReader } from './remote/endpoint.ts';
import { limited } from './with-limit.ts';
import { withMetrics, type Observe } from './with-metrics.ts';
import { withScope, type Drop } from './with-scope.ts';
import { withTimeout } from './with-timeout.ts';
import { elasticsearch } from './elasticsearch.ts';
import { loki } from './loki.ts';
import { openSearch } from './opensearch.ts';
import { podsLimits, podsStore } from './pods.ts';

/** Returns the store for a caller: one that reads as the caller, or the same for all, within the limits that holders share. */
export type StoreFor = (caller: Caller, holder: string) => LogStore;

export interface StoreParts {
  readonly listPods: ListPods;
  readonly secrets: SecretReader;
  readonly observe: Observe;
  readonly drop: Drop;
}

/** The one that the configuration names, behind what bounds the use of it. */
export function openStore(settings: LoggingSettings, parts: StoreParts): StoreFor {
  const limit = limited();
  const { observe, drop } = parts;
  if (settings.store === 'pods') {
    const bytes = settings.pods?.maxBytesPerContainer ?? podsLimits.bytes;
    const storeFor = podsStore({ list: parts.listPods, limits: { ...podsLimits, bytes } });
    // It looks at the clock itself, because it has something to show when its time is over.
    return (caller, holder) => withScope(withMetrics(limit(storeFor(caller, holder), holder), observe), drop);
  }
  const store = withTimeout(external(settings, settings.store, parts));
  return (_, holder) => withScope(withMetrics(limit(store, holder), observe), drop);
}

function external(settings: LoggingSettings, name: Exclude<LoggingSettings['store'], 'pods'>, { secrets }: StoreParts) {
  const { opensearch: ofOpenSearch, elasticsearch: ofElasticsearch, loki: ofLoki } = settings;
  if (name === 'opensearch' && ofOpenSearch !== undefined) return openSearch(ofOpenSearch, secrets);
  if (name === 'elasticsearch' && ofElasticsearch !== undefined) return elasticsearch(ofElasticsearch, secrets);
  if (name === 'loki' && ofLoki !== undefined) return loki(ofLoki, secrets);
  throw new Error(`the configuration has no section logging.${name}, which its schema demands`);
}
