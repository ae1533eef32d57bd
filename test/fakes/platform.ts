/** The accounts, sessions and tokens of one replica over a cluster in memory, put together as server.ts does. */
import { Directory } from '../../src/accounts/directory/directory.ts';
import { LastLogins } from '../../src/accounts/logins/last-logins.ts';
import { IdentityProviders } from '../../src/accounts/providers/identity-providers.ts';
import { providerTypes } from '../../src/accounts/providers/index.ts';
import { PasswordProviders } from '../../src/accounts/providers/password-providers.ts';
import type { lookUp } from '../../src/accounts/providers/ldap.ts';
import { Linking } from '../../src/accounts/providers/linking.ts';
import { RedirectProviders } from '../../src/accounts/providers/redirect-providers.ts';
import type { ProviderTypes } from '../../src/accounts/providers/provider.ts';
import { LoginHistories } from '../../src/accounts/logins/history.ts';
import { LoginLimiter } from '../../src/accounts/logins/limit.ts';
import { PasswordStore } from '../../src/accounts/passwords/store.ts';
import { Passwords } from '../../src/accounts/passwords/passwords.ts';
import { RefreshTokens } from '../../src/tokens/refresh-tokens.ts';
import { SecretRefs } from '../../src/cluster/secret-refs.ts';
import { Sessions } from '../../src/tokens/sessions/sessions.ts';
import { SigningKeys } from '../../src/tokens/signing-keys.ts';
import { passwordSecretOf, passwordSecretType, Users, type UserSpec } from '../../src/accounts/directory/users.ts';
import { gatewayAuthenticator, platformToken, tokenReview } from '../../src/auth/authenticators/index.ts';
import { AccessTokens } from '../../src/auth/authenticators/access-tokens.ts';
import { accessReview } from '../../src/auth/authorizers/access-review.ts';
import { Tokens } from '../../src/tokens/jwt.ts';
import { LiveConfiguration } from '../../src/config/live.ts';
import { usersPath } from '../../src/config/names.ts';
import { createLogger, type Logger } from '../../src/runtime/logger.ts';
import { oauthRoutes } from '../../src/oauth/index.ts';
import type { PasswordLoginParts } from '../../src/oauth/password-login.ts';
import type { Route } from '../../src/http/route.ts';
import { FakeClock, settle } from '../labs/cluster-fakes.ts';
import { MemoryCluster, type MemoryClient } from './cluster.ts';
import { configuration } from './configuration.ts';
import { CountingHashes } from './hashes.ts';
import { keyMaker } from './signing-keys.ts';

export const namespace = 'platform-system';
const cheap = 'bcrypt:4';
export const rightPassword = 'correct horse';

export interface Platform extends Omit<PasswordLoginParts, 'multipleLogin'> {
  readonly clock: FakeClock;
  readonly cluster: MemoryCluster;
  readonly client: MemoryClient;
  readonly live: LiveConfiguration;
  readonly users: Users;
  readonly tokens: Tokens;
  readonly accessTokens: AccessTokens;
  readonly hashes: CountingHashes;
  /** Those of OAuth. */
  readonly routes: readonly Route[];
  /** Puts another configuration in force; a user without `passwordHash` has the right password. */
  readonly configure: (authentication: Readonly<Record<string, unknown>>) => void;
  /** Makes a User object, or changes its spec; with the right password unless `password` is false. Answers its uid. */
  readonly putUser: (username: string, spec?: UserSpec, password?: boolean) => Promise<string>;
  readonly stop: () => void;
}

export interface PlatformOptions {
  readonly authentication?: Readonly<Record<string, unknown>>;
  readonly log?: Logger;
  /** Another replica of the same cluster. */
  readonly beside?: Pick<Platform, 'clock' | 'cluster'>;
  /** Looks names up in place of an LDAP server. */
  readonly lookUp?: typeof lookUp;
}

/** Those of all tests of a file. */
const keys = new SigningKeys({
  client: new MemoryCluster().client(),
  namespace,
  makeKey: keyMaker(),
  clock: new FakeClock(),
  log: createLogger({ silent: true }),
});
const started = keys.start().then(() => keys.stop());

export async function createPlatform({
  authentication = {},
  log = createLogger({ silent: true }),
  beside,
  lookUp: fakeLookUp = () => Promise.reject(new Error('there is no LDAP server')),
}: PlatformOptions = {}): Promise<Platform> {
  const clock = beside?.clock ?? new FakeClock();
  const cluster = beside?.cluster ?? new MemoryCluster(clock);
  const client = cluster.client();
  const hashes = new CountingHashes();
  const passwords = new Passwords(hashes, clock);
  const live = new LiveConfiguration();
  const secrets = new SecretRefs({ client, namespace, log });
  const users = new Users({ client, namespace, log, clock });
  const directory = new Directory({
    config: live,
    secrets,
    users,
    passwords,
    clock,
  });
  const passwordStore = new PasswordStore({ client, namespace, directory, passwords, log, clock });
  const passwordHash = hashes.of(rightPassword, cheap);
  const configure = (changes: Readonly<Record<string, unknown>>): void => {
    const configured = (changes['users'] ?? [{ username: 'alice', groups: ['a'] }]) as object[];
    live.accept(
      configuration({
        authentication: { ...changes, users: configured.map((user) => ({ passwordHash, ...user })) },
      }),
    );
  };
  configure(authentication);
  await directory.start(new AbortController().signal);
  users.start();
  await started;
  const refreshTokens = RefreshTokens.stored({ client, namespace, clock, log });
  await refreshTokens.start();
  const sessions = new Sessions({
    client,
    namespace,
    lives: () => live.value.authentication,
    tokens: refreshTokens,
    maySweep: () => true,
    isDismissed: (spec) => directory.isDismissed(spec),
    clock,
    log,
  });
  directory.dismissed.subscribe((dismissed) => void sessions.dismiss(dismissed));
  sessions.start();
  const tokens = new Tokens({
    keys,
    settings: () => live.value.authentication,
    clock: () => clock.now(),
  });
  const accessTokens = new AccessTokens({ tokens, sessions, directory });
  const reviewToken = tokenReview(client, async () => []);
  const limiter = new LoginLimiter(
    () => live.value.authentication.loginLimit,
    () => clock.now(),
  );
  directory.unlocked.subscribe((account) => limiter.unlock(account));
  const lastLogins = new LastLogins({ client, users, clock, log });
  const loginHistories = new LoginHistories({
    client,
    namespace,
    settings: () => live.value.authentication.loginHistory,
    directory,
    loggedIn: (user, time) => lastLogins.note(user, time),
    maySweep: () => true,
    clock,
    log,
  });
  await settle();
  const types: ProviderTypes = {
    ...providerTypes,
    LDAP: {
      kind: 'password',
      create: ({ ldap: settings }, { secret: bindPassword }) => ({
        lookUp: (name) => fakeLookUp({ settings, bindPassword }, name),
      }),
    },
  };
  const identityProviders = new IdentityProviders({ config: live, secrets, log, types });
  const passwordProviders = new PasswordProviders(identityProviders);
  const linking = new Linking({ config: live, client, directory, log });
  const accounts = {
    passwordProviders,
    linking,
    directory,
    passwords,
    passwordStore,
    limiter,
    loginHistories,
    sessions,
    tokens,
    accessTokens,
  };
  const platform: Platform = {
    ...accounts,
    clock,
    cluster,
    client,
    live,
    users,
    hashes,
    routes: oauthRoutes({
      redirectProviders: new RedirectProviders(identityProviders),
      refreshTokens,
      clock: () => clock.now(),
      ...accounts,
      reviewToken,
      authenticator: gatewayAuthenticator([platformToken(accessTokens), reviewToken]),
      authorizer: accessReview(client, () => clock.now()),
      audiences: () => client.audiences(),
      keys,
      issuer: () => live.value.authentication.issuer,
      multipleLogin: () => live.value.authentication.multipleLogin,
    }),
    configure,
    async putUser(username, spec = {}, password = true) {
      cluster.put(usersPath, {
        apiVersion: 'iam.platform.io/v1alpha2',
        kind: 'User',
        metadata: { name: username },
        spec,
      });
      const uid = cluster.get(usersPath, username)?.metadata.uid ?? '';
      const { name, key } = passwordSecretOf(uid);
      const data = { [key]: Buffer.from(passwordHash).toString('base64') };
      if (password)
        cluster.put(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, type: passwordSecretType, data });
      await settle();
      return uid;
    },
    stop() {
      sessions.stop();
      refreshTokens.stop();
      secrets.stop();
      users.stop();
    },
  };
  return platform;
}
