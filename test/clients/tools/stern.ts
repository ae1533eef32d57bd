import { startProgram } from '../../labs/integration/program.ts';
import { buildGoProgram } from '../go-program.ts';
import type { Tool } from '../tool.ts';

export const stern: Tool = {
  name: 'stern',
  build: () => buildGoProgram('stern'),
  flows: {
    'follows the log of a pod': async ({ path }, site) => {
      const follow = startProgram(path, ['w.b', `--namespace=${site.namespace}`, '--output=raw'], {
        KUBECONFIG: site.gateway,
        HOME: site.folder(),
      });
      try {
        await follow.line('stern prints an old line', (line) => line === 'the first line');
        site.log('a line for stern');
        await follow.line('stern prints a new line', (line) => line === 'a line for stern');
      } finally {
        await follow.end();
      }
    },
  },
};
