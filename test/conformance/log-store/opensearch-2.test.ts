import { searchSuite } from './search-stand.ts';

searchSuite('opensearch-2.19.1', 200_000, 1);
