import { writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import type { Pair } from './pki.ts';

/** A client certificate, or a file whose token is read again as it is renewed. */
export type Credential = Pair | { readonly tokenFile: string };

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Writes a kubeconfig with one cluster and one user. */
export async function writeKubeconfig(
  file: string,
  cluster: { readonly server: string; readonly authority: string },
  credential: Credential,
): Promise<void> {
  const user =
    'tokenFile' in credential
      ? { tokenFile: credential.tokenFile }
      : {
          'client-certificate-data': base64(credential.certificate),
          'client-key-data': base64(credential.key),
        };
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'platform',
        cluster: { server: cluster.server, 'certificate-authority-data': base64(cluster.authority) },
      },
    ],
    users: [{ name: 'platform', user }],
    contexts: [{ name: 'platform', context: { cluster: 'platform', user: 'platform' } }],
    'current-context': 'platform',
  };
  await writeFile(file, stringify(content), { mode: 0o600 });
}
