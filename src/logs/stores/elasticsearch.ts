/** Elasticsearch 6 and later. */
import type { SearchSettings } from '../../config/log-stores.ts';
import type { LogStore } from './log-store.ts';
import { endpointOf, type SecretReader } from './remote/endpoint.ts';
import { SearchStore } from './search/store.ts';

export const elasticsearch = (settings: SearchSettings, secrets: SecretReader): LogStore =>
  new SearchStore({ name: 'elasticsearch', endpoint: endpointOf('elasticsearch', settings, secrets), ...settings });
