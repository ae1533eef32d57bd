/**
 * The certificate that the TLS listeners show: from given files (cert-manager's, or one's own), read again when they change, or our
 * own from the Secret platform-serving-cert, which all replicas share and whoever comes first makes and renews.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { objectKeys, objectNames } from '../config/names.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { ensure } from '../cluster/objects.ts';
import type { Secret } from '../cluster/secret-refs.ts';
import { isKubeError } from '../cluster/client/kube-error.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Clock } from '../runtime/time.ts';
import { newMaterial, trustedBy, upToDate, type ServingMaterial } from './authority.ts';

export interface Serving {
  readonly key: string;
  readonly cert: string;
  /** The CAs to publish, PEM texts one after the other; undefined if they are not known here. */
  readonly ca: string | undefined;
  /** Whether the CA is ours, so that the APIService's caBundle is ours to write. */
  readonly own: boolean;
}

export type ServingSource = () => Promise<Serving>;

/** The files are read at each call. `ca.crt` beside the certificate, as cert-manager writes it, is the CA. */
export const servingFromFiles =
  (certFile: string, keyFile: string): ServingSource =>
  async () => {
    const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
    const ca = await readFile(join(dirname(certFile), objectKeys.ca), 'utf8').catch(() => undefined);
    return { cert, key, ca, own: false };
  };

const encode = (material: ServingMaterial): Record<string, string> =>
  Object.fromEntries(Object.entries(material).map(([key, pem]) => [key, Buffer.from(String(pem)).toString('base64')]));

function decode({ data = {} }: Secret): ServingMaterial {
  for (const key of ['ca.crt', 'ca.key', 'tls.crt', 'tls.key'])
    if (data[key] === undefined)
      throw new Error(`Secret ${objectNames.servingCertSecret} has no ${key}; delete the Secret and a new one is made`);
  const parts = Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]);
  return Object.fromEntries(parts) as ServingMaterial;
}

/** `hosts`: the DNS names and addresses that the certificate must hold. */
export function servingFromSecret(options: {
  client: KubeClient;
  namespace: string;
  hosts: () => readonly string[];
  log: Logger;
  clock: Pick<Clock, 'now'>;
}): ServingSource {
  const { client, namespace, hosts, log, clock } = options;
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  const name = objectNames.servingCertSecret;
  return async () => {
    const secret = await ensure<Secret & { type?: string }>(client, path, name, async () => ({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { name, namespace },
      data: encode(await newMaterial(hosts(), clock.now())),
    }));
    const found = decode(secret);
    let material = await upToDate(found, hosts(), clock.now());
    if (material !== found) {
      try {
        await client.json(`${path}/${name}`, { method: 'PUT', body: { ...secret, data: encode(material) } });
        log.info('the serving certificate was renewed');
        if (trustedBy(material) !== trustedBy(found))
          log.warn('the CAs of the serving certificate have changed: whoever keeps a copy of them needs a new one');
      } catch (error) {
        if (!isKubeError(error, 409)) throw error;
        material = decode(await client.json<Secret>(`${path}/${name}`));
      }
    }
    return { cert: material['tls.crt'], key: material['tls.key'], ca: trustedBy(material), own: true };
  };
}
