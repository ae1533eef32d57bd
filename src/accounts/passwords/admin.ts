import { randomInt } from 'node:crypto';
import type { PlatformConfiguration } from '../../config/schema.ts';
import { objectKeys, objectNames } from '../../config/names.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { ensure } from '../../cluster/objects.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Passwords } from './passwords.ts';
import type { Secret } from '../../cluster/secret-refs.ts';

/** Letters and digits without those that are easily confused. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789';
const passwordLength = 20;

/**
 * Creates the password of the first administrator. If the configuration refers to the Secret platform-admin and the
 * Secret does not exist, it is created with a password of 116 bits and its hash. A chart template would create a new
 * password each time the chart is rendered.
 */
export async function ensureAdminSecret(options: {
  client: KubeClient;
  namespace: string;
  configuration: PlatformConfiguration;
  passwords: Passwords;
  log: Logger;
}): Promise<void> {
  const { client, namespace, configuration, passwords, log } = options;
  const name = objectNames.adminSecret;
  if (!configuration.authentication.users.some((user) => user.passwordRef?.name === name)) return;
  await ensure<Secret & { type: string; stringData?: Record<string, string> }>(
    client,
    `/api/v1/namespaces/${namespace}/secrets`,
    name,
    async () => {
      const password = Array.from({ length: passwordLength }, () => alphabet[randomInt(alphabet.length)]).join('');
      log.info('admin password generated', { name });
      return {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, namespace },
        type: 'Opaque',
        stringData: { [objectKeys.password]: password, [objectKeys.passwordHash]: await passwords.hash(password) },
      };
    },
  );
}
