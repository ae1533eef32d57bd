/** Client certificates of the node's programs, and certificates for requests of kube-apiserver to the kubelet. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeKubeconfig } from '../../../hack/cluster/kubeconfig.ts';
import { createAuthority, readAuthority } from '../../../hack/cluster/pki.ts';

export const nodeName = 'node-1';

const pki = (folder: string): string => join(folder, 'node-pki');

export const kubeletFiles = (folder: string): { authority: string; certificate: string; key: string } => ({
  authority: join(pki(folder), 'authority.crt'),
  certificate: join(pki(folder), 'kubelet.crt'),
  key: join(pki(folder), 'kubelet.key'),
});

/** Returns the flags with which kube-apiserver connects to the kubelet. */
export async function writeKubeletPki(folder: string, address: string): Promise<string[]> {
  mkdirSync(pki(folder), { mode: 0o700 });
  const authority = await createAuthority('kubelet-ca');
  const kubelet = await authority.issue({ commonName: nodeName, server: [nodeName, address] });
  const apiserver = await authority.issue({ commonName: 'kube-apiserver', organization: 'system:masters' });
  const paths = kubeletFiles(folder);
  const client = { certificate: join(pki(folder), 'client.crt'), key: join(pki(folder), 'client.key') };
  writeFileSync(paths.authority, authority.certificate);
  for (const [path, pair] of [
    [paths, kubelet],
    [client, apiserver],
  ] as const) {
    writeFileSync(path.certificate, pair.certificate);
    writeFileSync(path.key, pair.key, { mode: 0o600 });
  }
  return [
    `--kubelet-certificate-authority=${paths.authority}`,
    `--kubelet-client-certificate=${client.certificate}`,
    `--kubelet-client-key=${client.key}`,
    '--kubelet-preferred-address-types=InternalIP',
  ];
}

export interface Kubeconfigs {
  readonly scheduler: string;
  readonly kubelet: string;
  readonly proxy: string;
}

/** Issues certificates from the authority of the existing control plane in `folder`. */
export async function writeKubeconfigs(folder: string, server: string): Promise<Kubeconfigs> {
  const authority = await readAuthority(folder);
  const write = async (name: string, commonName: string, organization?: string): Promise<string> => {
    const file = join(folder, `${name}.kubeconfig`);
    const subject = organization === undefined ? { commonName } : { commonName, organization };
    await writeKubeconfig(file, { server, authority: authority.certificate }, await authority.issue(subject));
    return file;
  };
  return {
    scheduler: await write('scheduler', 'system:kube-scheduler'),
    kubelet: await write('kubelet', `system:node:${nodeName}`, 'system:nodes'),
    proxy: await write('proxy', 'system:kube-proxy'),
  };
}
