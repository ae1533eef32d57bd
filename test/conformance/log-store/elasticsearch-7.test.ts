import { searchSuite } from './search-stand.ts';

searchSuite('elasticsearch-7.17.29', 60_000, 2);
