/**
 * Selects the version of Kubernetes. Without the variable KUBERNETES, it is the version that programs/go.mod pins. For
 * every value of the variable, a folder in `kubernetes` pins the version.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { kubernetesVersion, modules } from './go-modules.ts';

const others = join(import.meta.dirname, 'kubernetes');

/** Returns the folder of the go.mod with the selected version. Throws if there is none. */
export function kubernetesModules(): string {
  const selected = process.env['KUBERNETES'] ?? '';
  if (selected === '') return modules;
  const versions = readdirSync(others);
  if (!versions.includes(selected))
    throw new Error(`KUBERNETES: expected ${versions.join(', ')} or no value, got ${JSON.stringify(selected)}`);
  return join(others, selected);
}

/** Returns the minor version of the selected version, such as 36. */
export const kubernetesMinor = async (): Promise<number> =>
  Number((await kubernetesVersion(kubernetesModules())).split('.')[1]);
