/**
 * Go programs. The go.mod of each program, go-programs/NAME/go.mod, pins the versions and names the program as its
 * tool.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { output } from '../../hack/cluster/exec.ts';
import { cached } from '../labs/cached.ts';
import type { Built } from './tool.ts';

const flags = ['-mod=readonly', '-trimpath', '-gcflags=all=-dwarf=false', '-ldflags', '-s -w'];

export async function buildGoProgram(name: string): Promise<Built> {
  const module = join(import.meta.dirname, 'go-programs', name);
  const read = (file: string): Promise<string> => readFile(join(module, file), 'utf8');
  const [mod, sum] = await Promise.all(['go.mod', 'go.sum'].map(read));
  const program = /^tool (\S+)$/m.exec(mod ?? '')?.[1] ?? '';
  // The module's path is a prefix of the program's path.
  const version = [...(mod ?? '').matchAll(/^(?:require )?\s*(\S+) (v\S+)/gm)].find(([, path = '']) =>
    `${program}/`.startsWith(`${path}/`),
  )?.[2];
  if (version === undefined) throw new Error(`${module}/go.mod does not require the module of its tool`);
  const folder = await cached(name, [mod ?? '', sum ?? '', ...flags], async (target) => {
    await output('go', ['build', ...flags, '-o', join(target, name), program], {
      cwd: module,
      env: { CGO_ENABLED: '0' },
    });
  });
  return { version, path: join(folder, name) };
}
