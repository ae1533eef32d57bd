/** Builds the users, sessions and tokens of one replica as in production, with an in-memory cluster. */
import { buildAccounts, type PasswordChecks } from '../../src/accounts/build.ts';
import { passwordSecretOf, passwordSecretType, type UserSpec } from '../../src/accounts/directory/users.ts';
import { buildAuth } from '../../src/auth/build.ts';
import { buildCluster } from '../../src/cluster/build.ts';
import { objectKeys, usersPath } from '../../src/config/names.ts';
import { Lifecycle } from '../../src/runtime/lifecycle.ts';
import { createLogger, type Logger } from '../../src/runtime/logger.ts';
import { buildTokens } from '../../src/tokens/build.ts';
import { MemoryCluster } from '../fakes/cluster.ts';
import { configuration, configurationText } from '../fakes/configuration.ts';
import { CountingHashes } from '../fakes/hashes.ts';
import { signingKeysSecret } from '../fakes/signing-keys.ts';
import { FakeClock, settle } from './cluster-fakes.ts';

export const namespace = 'platform-system';
export const rightPassword = 'correct horse';
const release = { namespace, config: undefined, configMap: 'platform-config' };
const silent = createLogger({ silent: true });
const inNamespace = `/api/v1/namespaces/${namespace}`;

type Authentication = Readonly<Record<string, unknown>> & { readonly users?: readonly object[] };

export interface AccountsOptions extends Pick<PasswordChecks, 'providerTypes'> {
  /**
   * Users that are written to the cluster before the replica starts. Users without `passwordHash` have the default
   * password.
   */
  readonly authentication?: Authentication | undefined;
  readonly log?: Logger | undefined;
  /**
   * Replica in whose cluster this replica starts. Both replicas have the same configuration unless `authentication` is
   * given.
   */
  readonly beside?: { readonly clock: FakeClock; readonly cluster: MemoryCluster };
}

export type Accounts = Awaited<ReturnType<typeof startAccounts>>;

export async function startAccounts({
  beside,
  authentication = beside === undefined ? {} : undefined,
  log = silent,
  ...checks
}: AccountsOptions = {}) {
  const clock = beside?.clock ?? new FakeClock();
  const cluster = beside?.cluster ?? new MemoryCluster(clock);
  const client = cluster.client();
  const hashes = new CountingHashes();
  const passwordHash = hashes.of(rightPassword, 'bcrypt:4');
  const sections = ({ users = [{ username: 'alice', groups: ['a'] }], ...more }: Authentication) => ({
    authentication: { ...more, users: users.map((user) => ({ passwordHash, ...user })) },
  });
  if (beside === undefined) cluster.put(`${inNamespace}/secrets`, signingKeysSecret);
  if (authentication !== undefined)
    cluster.put(`${inNamespace}/configmaps`, {
      metadata: { name: release.configMap },
      data: { [objectKeys.config]: configurationText(sections(authentication)) },
    });
  const lifecycle = new Lifecycle(log);
  const base = buildCluster(release, { client, lifecycle, clock, log });
  const tokens = buildTokens(base);
  const accounts = buildAccounts(base, tokens, { hashFunctions: hashes, ...checks });
  const auth = buildAuth(base, tokens, accounts);
  await lifecycle.start(new AbortController().signal);
  await settle();
  return {
    ...base,
    ...tokens,
    ...accounts,
    ...auth,
    clock,
    cluster,
    client,
    hashes,
    /** Changes the configuration of this replica. */
    configure: (changed: Authentication) => base.live.accept(configuration(sections(changed))),
    /** Creates or replaces a User, with the default password unless `password` is false. Returns its uid. */
    async putUser(username: string, spec: UserSpec = {}, password = true): Promise<string> {
      cluster.put(usersPath, {
        apiVersion: 'iam.platform.io/v1alpha2',
        kind: 'User',
        metadata: { name: username },
        spec,
      });
      const uid = cluster.get(usersPath, username)?.metadata.uid ?? '';
      const { name, key } = passwordSecretOf(uid);
      const data = { [key]: Buffer.from(passwordHash).toString('base64') };
      if (password) cluster.put(`${inNamespace}/secrets`, { metadata: { name }, type: passwordSecretType, data });
      await settle();
      return uid;
    },
    stop: () => lifecycle.stop({ announce: 0, grace: 0 }),
  };
}
