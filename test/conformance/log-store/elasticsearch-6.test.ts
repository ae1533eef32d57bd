import { searchSuite } from './search-stand.ts';

searchSuite('elasticsearch-6.8.23', 60_000, 5);
