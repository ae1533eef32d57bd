/** Creates the keys and certificates of a control plane in the folder from which its programs read them. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Block } from './network.ts';
import { createAuthority, signingKey, type Pair } from './pki.ts';

export interface ClusterPki {
  readonly authority: string;
  readonly admin: Pair;
  readonly controllerManager: Pair;
}

/**
 * Creates every key once. A folder without `complete.json` is left over from an interrupted start and is overwritten.
 */
export async function clusterPki(folder: string, block: Block): Promise<ClusterPki> {
  const complete = join(folder, 'complete.json');
  if (existsSync(complete)) return JSON.parse(await readFile(complete, 'utf8')) as ClusterPki;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text, { mode: 0o600 });
  const writePair = async (name: string, pair: Pair): Promise<void> => {
    await write(`${name}.crt`, pair.certificate);
    await write(`${name}.key`, pair.key);
  };
  const authority = await createAuthority('kubernetes-ca');
  const frontProxy = await createAuthority('front-proxy-ca');
  const service = [
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ];
  const names = ['localhost', ...service, '127.0.0.1', block.firstService];
  const serviceAccount = await signingKey();
  await writePair('ca', authority);
  await writePair('front-proxy-ca', frontProxy);
  await writePair('apiserver', await authority.issue({ commonName: 'kube-apiserver', server: names }));
  await writePair('front-proxy-client', await frontProxy.issue({ commonName: 'front-proxy-client' }));
  await write('service-account.key', serviceAccount.key);
  await write('service-account.pub', serviceAccount.publicKey);
  const pki: ClusterPki = {
    authority: authority.certificate,
    admin: await authority.issue({ commonName: 'kubernetes-admin', organization: 'system:masters' }),
    controllerManager: await authority.issue({ commonName: 'system:kube-controller-manager' }),
  };
  await write('complete.json', JSON.stringify(pki));
  return pki;
}
