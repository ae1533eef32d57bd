import type { PlatformConfiguration } from '../../config/schema.ts';
import type { Caller, LogStore } from '../log-store.ts';
import type { ListPods } from '../pods/source.ts';
import { podsLimits, podsStore } from './pods.ts';

export type LoggingSettings = PlatformConfiguration['logging'];

/** The same store for whoever asks, or one that reads as the caller. */
export type StoreFor = (caller: Caller) => LogStore;

export interface StoreParts {
  readonly listPods: ListPods;
}

/** The one that the configuration names. */
export function openStore(settings: LoggingSettings, { listPods }: StoreParts): StoreFor {
  const bytes = settings.pods?.maxBytesPerContainer ?? podsLimits.bytes;
  return podsStore({ list: listPods, limits: { ...podsLimits, bytes } });
}
