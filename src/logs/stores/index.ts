import type { LoggingSettings, LogStoreName, LogStoreSettings } from '../../config/log-stores.ts';
import type { LogStoreType, StoreFor, StoreParts } from './log-store.ts';
import { loki } from './loki/store.ts';
import { searchStoreType } from './search/store.ts';
import { pods } from './pods/store.ts';
import { limited } from './with-limit.ts';
import { withMetrics, type Observe } from './with-metrics.ts';
import { withScope, type Drop } from './with-scope.ts';
import { withTimeout } from './with-timeout.ts';

const logStoreTypes: { readonly [Name in LogStoreName]: LogStoreType<LogStoreSettings<Name>> } = {
  pods,
  opensearch: searchStoreType('opensearch'),
  elasticsearch: searchStoreType('elasticsearch'),
  loki,
};

export interface OpenParts extends StoreParts {
  readonly observe: Observe;
  readonly drop: Drop;
}

/** Opens the configured store, with limits and metrics, and with a filter that drops records outside the selection. */
export function openStore(settings: LoggingSettings, parts: OpenParts): StoreFor {
  const storeFor = openType(settings.store, settings[settings.store], parts);
  const limit = limited();
  const { observe, drop } = parts;
  return (caller, holder) => withScope(withMetrics(limit(storeFor(caller, holder), holder), observe), drop);
}

function openType<Name extends LogStoreName>(
  name: Name,
  section: LogStoreSettings<Name> | undefined,
  parts: StoreParts,
): StoreFor {
  if (section === undefined)
    throw new Error(`logging.${name} is missing, although the configuration schema requires it`);
  const { open, limitsOwnTime } = logStoreTypes[name];
  const storeFor = open(section, parts);
  return limitsOwnTime === true ? storeFor : (caller, holder) => withTimeout(storeFor(caller, holder));
}
