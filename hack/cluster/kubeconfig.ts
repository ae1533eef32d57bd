import { readFile, writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import type { Pair } from './pki.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Writes a kubeconfig with one cluster and one user, authenticated by a client certificate. */
export async function writeKubeconfig(
  file: string,
  cluster: { readonly server: string; readonly authority: string },
  user: Pair,
): Promise<void> {
  const name = 'platform';
  await write(file, {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: cluster.server, 'certificate-authority-data': base64(cluster.authority) } }],
    users: [
      {
        name,
        user: { 'client-certificate-data': base64(user.certificate), 'client-key-data': base64(user.key) },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}

/**
 * Copies the kubeconfig `from`, which has one user, and replaces the credentials with the token in `tokenFile`. Clients
 * read that file again after the token is renewed.
 */
export async function writeTokenKubeconfig(file: string, from: string, tokenFile: string): Promise<void> {
  const kubeconfig = parse(await readFile(from, 'utf8')) as { users: { name: string }[] };
  await write(file, { ...kubeconfig, users: kubeconfig.users.map(({ name }) => ({ name, user: { tokenFile } })) });
}

const write = (file: string, content: object): Promise<void> => writeFile(file, stringify(content), { mode: 0o600 });
