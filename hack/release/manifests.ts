/** Manifests in single files, for `kubectl apply --server-side -f`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Release } from './release.ts';

export const crds = ({ root }: Release): string => resources(join(root, 'manifests/crds')).join('---\n');

/** Returns manifests/base, which includes the CRDs, with the image of the release. */
export function manifests({ root, version, image }: Release): string {
  const all = resources(join(root, 'manifests/base')).join('---\n');
  const own = `image: platform-apiserver:${version}\n`;
  if (!all.includes(own)) throw new Error(`manifests/base: expected ${own.trim()}`);
  return all.replaceAll(own, `image: ${image}:${version}\n`);
}

/** Returns the resources of a kustomization that consists only of resources. */
function resources(folder: string): string[] {
  const file = join(folder, 'kustomization.yaml');
  const { apiVersion: _, kind: __, resources: paths, ...rest } = parse(readFileSync(file, 'utf8')) as Kustomization;
  if (Object.keys(rest).length > 0)
    throw new Error(`${file}: expected only resources, got ${Object.keys(rest).join()}`);
  return paths.flatMap((path) =>
    path.endsWith('.yaml') ? [readFileSync(join(folder, path), 'utf8')] : resources(join(folder, path)),
  );
}

interface Kustomization {
  readonly apiVersion: string;
  readonly kind: string;
  readonly resources: readonly string[];
}
