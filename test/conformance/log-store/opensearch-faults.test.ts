import { startSearchServer } from '../../../hack/log-stores/search-servers.ts';
import { faultsSuite } from './faults-suite.ts';
import { indexPrefix, load } from './fluent-bit.ts';

faultsSuite('opensearch', {
  section: (url) => ({ store: 'opensearch', opensearch: { url, indexPrefix } }),
  async start(dir, port, records) {
    const store = await startSearchServer('opensearch-2.19.1', dir, port);
    await load(store.url, records, { shards: 1, isTyped: false });
    return store;
  },
  async countRequests(url) {
    const response = await fetch(`${url}/_stats/search`);
    const { _all: all } = (await response.json()) as { _all: { total: { search: { query_total: number } } } };
    return all.total.search.query_total;
  },
});
