/** k9s requires a terminal, which `script` provides. The test searches the output for the cells of the table. */
import { startProgram } from '../../labs/integration/program.ts';
import { eventually } from '../../labs/integration/eventually.ts';
import { quote } from '../../../hack/run/env-file.ts';
import { buildGoProgram } from '../go-program.ts';
import type { Tool } from '../tool.ts';

export const k9s: Tool = {
  name: 'k9s',
  build: () => buildGoProgram('k9s'),
  flows: {
    'shows nodes and pods': async ({ path }, site) => {
      for (const [resource, shown] of [
        ['nodes', 'node-1'],
        ['pods', 'web'],
      ] as const) {
        const home = site.folder();
        const args = [path, '--kubeconfig', site.gateway, '--command', resource, '--namespace', site.namespace];
        const command = `stty rows 50 cols 200; exec ${args.map(quote).join(' ')}`;
        const screen = startProgram('script', ['--quiet', '--flush', '--command', command, '/dev/null'], {
          HOME: home,
          XDG_CONFIG_HOME: home,
          XDG_STATE_HOME: home,
          XDG_DATA_HOME: home,
          TERM: 'xterm-256color',
        });
        try {
          await eventually(`k9s shows ${shown}`, () => {
            if (!screen.text().includes(shown)) throw new Error(screen.text().slice(-500));
          });
        } finally {
          await screen.end();
        }
      }
    },
  },
};
