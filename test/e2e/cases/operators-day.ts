import { match } from 'node:assert/strict';
import { blocksOf, outputPattern } from '../../labs/integration/documents.ts';
import type { Shell } from '../../labs/integration/shell.ts';
import { startOperatorShell } from '../operator/machine.ts';
import { prometheusObjects, traefikObjects } from '../operator/objects.ts';
import { operatorPrograms } from '../operator/programs.ts';
import { step, type Case } from '../steps.ts';

const guide = 'guides/operators-day.md';

export const operatorsDay: Case = {
  title: `The commands in docs/${guide} print what the page shows`,
  steps: (cluster) => {
    let shell: Shell;
    const blocks = blocksOf(guide);
    return [
      step('the cluster has Traefik and Prometheus', async () => {
        const programs = await operatorPrograms();
        await cluster.kubectl(`apply --server-side -f ${programs.definitions}`);
        await cluster.apply([...traefikObjects(programs), ...prometheusObjects(programs)]);
        await cluster.kubectl('--namespace traefik rollout status deployment traefik --timeout=60s');
        shell = await startOperatorShell(cluster);
      }),
      ...blocks.flatMap(({ language, text }, index) => {
        if (language !== 'sh') return [];
        const [title = ''] = text.split('\n');
        const next = blocks[index + 1];
        if (next?.language !== 'text') return step(title, async () => void (await shell.run(text)));
        const pattern = outputPattern(next.text.trim());
        return step(`${title} prints ${next.text.split('\n')[0]}`, () =>
          // Alerts and routes change after a while.
          cluster.until('the output is the documented one', async () => {
            const printed = await shell.run(`set +e\n${text}set -e`);
            // Columns of tables are padded.
            match(printed.replaceAll(/ +$/gm, '').trim(), pattern);
          }),
        );
      }),
      step('Traefik and Prometheus can be deleted', async () => {
        await shell.close();
        await cluster.kubectl('delete namespace traefik monitoring --timeout=60s');
      }),
    ];
  },
};
