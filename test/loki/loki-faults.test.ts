import { startLoki } from '../../hack/log-stores/loki.ts';
import { faultsSuite } from '../conformance/log-store/faults-suite.ts';
import { push } from '../conformance/log-store/loki-push.ts';

const tenant = 'platform';

faultsSuite('loki', {
  section: (url) => ({ store: 'loki', loki: { url, tenant } }),
  async start(dir, port, records) {
    const store = await startLoki(dir, port);
    await push(store.url, records, { tenant });
    return store;
  },
  async countRequests(url) {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const counts = metrics.matchAll(/^loki_request_duration_seconds_count\{[^}]*route="loki_api_v1_[^}]*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  },
});
