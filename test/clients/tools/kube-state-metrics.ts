import { randomUUID } from 'node:crypto';
import { freePort } from '../../../hack/cluster/chosen.ts';
import { eventually } from '../../labs/integration/eventually.ts';
import { create, remove } from '../../labs/integration/kube.ts';
import { startProgram } from '../../labs/integration/program.ts';
import { buildGoProgram } from '../go-program.ts';
import type { Tool } from '../tool.ts';

export const kubeStateMetrics: Tool = {
  name: 'kube-state-metrics',
  build: () => buildGoProgram('kube-state-metrics'),
  flows: {
    'reports existing, created and deleted objects': async ({ path }, site) => {
      const port = await freePort(24_000);
      const telemetry = await freePort(port + 1);
      const address = [
        '--host=127.0.0.1',
        `--port=${port}`,
        '--telemetry-host=127.0.0.1',
        `--telemetry-port=${telemetry}`,
      ];
      const program = startProgram(path, [...address, `--kubeconfig=${site.gateway}`, '--resources=nodes,configmaps']);
      const reported = async (metric: string, isReported = true): Promise<void> =>
        eventually(`${metric} is ${isReported ? '' : 'not '}reported`, async () => {
          const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
          if (text.includes(metric) !== isReported) throw new Error(`${text.length} bytes of other metrics`);
        });
      const name = `state-${randomUUID()}`;
      const configMaps = `/api/v1/namespaces/${site.namespace}/configmaps`;
      const metric = `kube_configmap_info{namespace="${site.namespace}",configmap="${name}"} 1`;
      try {
        await reported('kube_node_info{node="node-1"');
        await create(configMaps, { metadata: { name } });
        await reported(metric);
        await remove(`${configMaps}/${name}`);
        await reported(metric, false);
      } finally {
        await remove(`${configMaps}/${name}`);
        await program.end();
      }
    },
  },
};
