/** Publishes the CA: in the ConfigMap platform-apiserver-ca for clients, and in the APIServices for the aggregator. */
import { apiServices, objectKeys, objectNames } from '../config/names.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { ensureConfigMap } from '../cluster/objects.ts';
import type { KubeObject } from '../cluster/client/kube-object.ts';
import { isKubeError } from '../cluster/client/kube-error.ts';
import type { Logger } from '../runtime/logger.ts';

interface APIService extends KubeObject {
  readonly spec: { readonly caBundle?: string };
}

const merge = 'application/merge-patch+json';

export async function publishAuthority(client: KubeClient, namespace: string, ca: string): Promise<void> {
  await ensureConfigMap(client, namespace, objectNames.caConfigMap, { data: { [objectKeys.ca]: ca } });
}

/**
 * Writes the CA into the APIServices. Missing APIServices are skipped, because the gateway can be installed without
 * them.
 */
export async function publishCABundle(client: KubeClient, ca: string, log: Logger): Promise<void> {
  for (const name of apiServices) await publishIn(name, client, ca, log);
}

async function publishIn(name: string, client: KubeClient, ca: string, log: Logger): Promise<void> {
  const path = `/apis/apiregistration.k8s.io/v1/apiservices/${name}`;
  const caBundle = Buffer.from(ca).toString('base64');
  try {
    const current = await client.json<APIService>(path);
    if (current.spec.caBundle === caBundle) return;
    await client.json(path, {
      method: 'PATCH',
      contentType: merge,
      body: { spec: { caBundle, insecureSkipTLSVerify: null } },
    });
    log.info('CA written to APIService', { name });
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
  }
}
