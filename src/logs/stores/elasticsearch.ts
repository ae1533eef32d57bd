/** Elasticsearch 6 and later. */
import { searchStoreType } from './search/store.ts';

export const elasticsearch = searchStoreType('elasticsearch');
