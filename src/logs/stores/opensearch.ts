/** OpenSearch 1 and later. */
import { searchStoreType } from './search/store.ts';

export const opensearch = searchStoreType('opensearch');
