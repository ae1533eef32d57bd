import { deepStrictEqual, match, strictEqual } from 'node:assert/strict';
import { names, tag } from '../images/all.ts';
import { adminPassword, host, logIn } from '../release.ts';
import { step, type Case } from '../steps.ts';

const group = 'logging.platform.io/v1alpha2';
const apiService = '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha2.logging.platform.io';
const shop = 'logs';

interface LogResponse {
  readonly query: {
    readonly total: number;
    readonly records: readonly { readonly log: string; readonly time: string; readonly container: string }[];
  };
}

const texts = ({ query }: LogResponse): string[] => query.records.map(({ log }) => log).toSorted();

const script = 'i=0; while [ $i -lt 5 ]; do i=$((i+1)); echo "line $i"; done; echo "Problem: none" >&2; sleep 3600';

export const logs: Case = {
  title: 'The server reads pod logs from the node',
  steps: (cluster) => {
    let token = '';
    const fetchLogs = async (query: string): Promise<LogResponse> => {
      const { status, body } = await cluster.inside.request(`http://${host}/kapis/${group}/logs?${query}`, { token });
      strictEqual(status, 200, body);
      return JSON.parse(body) as LogResponse;
    };
    const written = ['Problem: none', 'line 1', 'line 2', 'line 3', 'line 4', 'line 5'];
    return [
      step('the pods of a Deployment write logs', async () => {
        token = (await logIn(cluster.inside, `http://${host}`, await adminPassword(cluster))).access_token;
        const labels = { app: 'writer' };
        const containers = [{ name: 'writer', image: `${names.client}:${tag}`, command: ['sh', '-c', script] }];
        await cluster.kube.json('/api/v1/namespaces', { method: 'POST', body: { metadata: { name: shop } } });
        await cluster.kube.json(`/apis/apps/v1/namespaces/${shop}/deployments`, {
          method: 'POST',
          body: {
            metadata: { name: 'writer' },
            spec: {
              selector: { matchLabels: labels },
              template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 0, containers } },
            },
          },
        });
        await cluster.until(
          'all lines are written',
          async () => (await fetchLogs(`namespaces=${shop}`)).query.total === 6,
        );
      }),
      step('the server finds logs by workload, and returns their times', async () => {
        const found = await fetchLogs('workloads=writer&log_query=PROBLEM,line%201');
        deepStrictEqual(texts(found), ['Problem: none', 'line 1']);
        for (const { time } of found.query.records) match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
      }),
      step('kubectl get --raw reads the logs of the namespace through kube-apiserver', async () => {
        await cluster.until('the APIService is available', async () => {
          const { status } = await cluster.kube.json<{
            status: { conditions?: readonly { type: string; status: string }[] };
          }>(apiService);
          return status.conditions?.find(({ type }) => type === 'Available')?.status === 'True';
        });
        const text = await cluster.kubectl(`get --raw /apis/${group}/logs?namespaces=${shop}&size=100`);
        deepStrictEqual(texts(JSON.parse(text) as LogResponse), written);
      }),
      step('the server exports the logs of a namespace', async () => {
        const { body } = await cluster.inside.request(
          `http://${host}/kapis/${group}/logs?operation=export&start_time=0&namespaces=${shop}`,
          { token },
        );
        deepStrictEqual(body.trimEnd().split('\n').toSorted(), written);
      }),
      step('the server no longer returns logs of deleted pods', async () => {
        await cluster.kube.json(`/api/v1/namespaces/${shop}`, { method: 'DELETE' });
        await cluster.until('no log is found', async () => (await fetchLogs(`namespaces=${shop}`)).query.total === 0);
      }),
    ];
  },
};
