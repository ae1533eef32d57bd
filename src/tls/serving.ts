/**
 * The certificate of the TLS listeners. The certificate comes from files, such as those of cert-manager, or from the
 * Secret platform-serving-cert, which all replicas share. The first replica that finds no Secret creates it, and the
 * first replica that finds the certificate due for renewal renews it.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readFlagFile } from '../config/flag-file.ts';
import { objectKeys, objectNames } from '../config/names.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { ensure } from '../cluster/objects.ts';
import type { Secret } from '../cluster/secret-refs.ts';
import { isKubeError } from '../cluster/client/kube-error.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Clock } from '../runtime/time.ts';
import { newMaterial, renewIfDue, trustedBy, type ServingMaterial } from './authority.ts';

export interface Serving {
  readonly key: string;
  readonly cert: string;
  /** CAs to publish, as concatenated PEM texts; undefined if they are unknown. */
  readonly ca: string | undefined;
  /** True if this server manages the CA, and therefore the caBundle of the APIServices. */
  readonly own: boolean;
}

export type ServingSource = () => Promise<Serving>;

const flags = { cert: '--tls-cert-file', key: '--tls-private-key-file' } as const;

/** Returns the result of `parse`. Replaces an error of OpenSSL by an error that names the flag and the file. */
function parsePEM<T>(flag: string, file: string, what: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new Error(`${flag}: ${file} contains no ${what} in PEM`, { cause });
  }
}

/**
 * Reads the certificate, key and CA files on every call. The CA is `ca.crt` in the directory of the certificate, where
 * cert-manager writes it. Throws if the files contain no certificate, or if the key does not belong to the certificate.
 */
export const servingFromFiles =
  (certFile: string, keyFile: string): ServingSource =>
  async () => {
    const cert = await readFlagFile(flags.cert, certFile);
    const key = await readFlagFile(flags.key, keyFile);
    const leaf = parsePEM(flags.cert, certFile, 'certificate', () => new X509Certificate(cert));
    const privateKey = parsePEM(flags.key, keyFile, 'unencrypted private key', () => createPrivateKey(key));
    if (!leaf.checkPrivateKey(privateKey))
      throw new Error(`${flags.key}: the key in ${keyFile} does not belong to the certificate in ${certFile}`);
    const ca = await readFile(join(dirname(certFile), objectKeys.ca), 'utf8').catch(() => undefined);
    return { cert, key, ca, own: false };
  };

const encode = (material: ServingMaterial): Record<string, string> =>
  Object.fromEntries(Object.entries(material).map(([key, pem]) => [key, Buffer.from(String(pem)).toString('base64')]));

function decode({ data = {} }: Secret): ServingMaterial {
  for (const key of ['ca.crt', 'ca.key', 'tls.crt', 'tls.key'])
    if (data[key] === undefined)
      throw new Error(
        `Secret ${objectNames.servingCertSecret}: "${key}" is missing; delete the Secret to create a new one`,
      );
  const parts = Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]);
  return Object.fromEntries(parts) as ServingMaterial;
}

/**
 * Returns the certificate in the Secret, which is created or renewed if needed. `hosts`: DNS names and addresses that
 * the certificate must contain.
 */
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
    let material = await renewIfDue(found, hosts(), clock.now());
    if (material !== found) {
      try {
        await client.json(`${path}/${name}`, { method: 'PUT', body: { ...secret, data: encode(material) } });
        log.info('serving certificate renewed');
        if (trustedBy(material) !== trustedBy(found))
          log.warn('CAs of the serving certificate changed; update every client that stores the previous CAs');
      } catch (error) {
        if (!isKubeError(error, 409)) throw error;
        material = decode(await client.json<Secret>(`${path}/${name}`));
      }
    }
    return { cert: material['tls.crt'], key: material['tls.key'], ca: trustedBy(material), own: true };
  };
}
