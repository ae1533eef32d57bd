/**
 * Commands: `up`, `down` and `status` of this work tree's control plane; `programs NAME…` prints a folder with links to
 * the programs.
 */
import { join } from 'node:path';
import { clusterDown, clusterStatus, clusterUp } from './commands.ts';
import { isProgram, linkPrograms } from './programs.ts';

const dir = join(import.meta.dirname, '../../.cluster');
const [command = '', ...names] = process.argv.slice(2);

try {
  switch (command) {
    case 'up':
      await clusterUp(dir);
      break;
    case 'down':
      await clusterDown(dir);
      break;
    case 'status':
      process.exitCode = (await clusterStatus(dir)) ? 0 : 1;
      break;
    case 'programs': {
      const known = names.filter(isProgram);
      if (known.length < names.length)
        throw new Error(`unknown program: ${names.filter((name) => !isProgram(name)).join(', ')}`);
      const folder = join(dir, 'bin');
      await linkPrograms(folder, known);
      console.log(folder);
      break;
    }
    default:
      throw new Error('usage: main.ts up | down | status | programs NAME…');
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
