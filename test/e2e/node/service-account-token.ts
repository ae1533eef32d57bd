/** The ServiceAccount token that the kubelet mounts into a pod. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inMemory } from '../machine/mounts.ts';
import type { Pod } from '../release.ts';

/** Returns the id (jti) of the token in a pod. */
export function tokenId(folder: string, { metadata }: Pod): string {
  const volumes = join(inMemory(folder, 'kubelet'), 'pods', metadata.uid, 'volumes/kubernetes.io~projected');
  const [volume = ''] = readdirSync(volumes).filter((name) => name.startsWith('kube-api-access-'));
  const [, claims = ''] = readFileSync(join(volumes, volume, 'token'), 'utf8').split('.');
  return (JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti: string }).jti;
}
