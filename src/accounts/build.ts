/** Builds the components for users, clients, logins and sessions. */
import type { ClusterParts } from '../cluster/build.ts';
import type { TokenParts } from '../tokens/build.ts';
import { hashesWaiting, sessions as knownSessions } from '../runtime/metrics/definitions.ts';
import { Sessions } from '../tokens/sessions/sessions.ts';
import { Directory } from './directory/directory.ts';
import { UserConditions } from './directory/user-conditions.ts';
import { Users } from './directory/users.ts';
import { LoginHistories } from './logins/history.ts';
import { LastLogins } from './logins/last-logins.ts';
import { LoginLimiter } from './logins/limit.ts';
import { SharedFailures } from './logins/shared-failures.ts';
import { ensureAdminSecret } from './passwords/admin.ts';
import { Passwords, type HashFunctions } from './passwords/passwords.ts';
import { PasswordStore } from './passwords/store.ts';
import { IdentityProviders } from './providers/identity-providers.ts';
import { providerTypes } from './providers/index.ts';
import { Linking } from './providers/linking.ts';
import { PasswordProviders } from './providers/password-providers.ts';
import type { ProviderTypes } from './providers/provider.ts';
import { RedirectProviders } from './providers/redirect-providers.ts';

export interface AccountParts {
  readonly users: Users;
  readonly passwords: Passwords;
  readonly directory: Directory;
  readonly sessions: Sessions;
  readonly limiter: LoginLimiter;
  readonly loginHistories: LoginHistories;
  readonly passwordStore: PasswordStore;
  readonly passwordProviders: PasswordProviders;
  readonly redirectProviders: RedirectProviders;
  readonly linking: Linking;
}

/** Implementations of password checks, which tests replace. */
export interface PasswordChecks {
  readonly hashFunctions?: HashFunctions;
  readonly providerTypes?: ProviderTypes;
}

export function buildAccounts(
  cluster: ClusterParts,
  { refreshTokens }: TokenParts,
  { hashFunctions, providerTypes: types = providerTypes }: PasswordChecks = {},
): AccountParts {
  const { client, namespace, live, secrets, lease, lifecycle, clock, log } = cluster;
  const passwords = new Passwords(hashFunctions, clock);
  hashesWaiting.read(() => [[{}, passwords.waiting]]);
  lifecycle.add('admin-secret', {
    start: () => ensureAdminSecret({ client, namespace, configuration: live.value, passwords, log }),
  });
  // `users` starts just before `directory`, so that the directory knows the configured users before it indexes the
  // first User.
  const users = lifecycle.add('users', new Users({ client, namespace, clock, log }));
  const shared = { client, namespace, config: live, secrets, users, passwords, clock, log };
  const directory = lifecycle.add('directory', new Directory(shared));
  const conditions = lifecycle.add('user-conditions', new UserConditions({ ...shared, directory }));
  directory.changed.subscribe((username) => {
    if (username === undefined) conditions.checkAll();
    else conditions.check(username);
  });
  const maySweep = () => lease.isHeld();
  const sessions = lifecycle.add(
    'sessions',
    new Sessions({
      ...shared,
      lifetimes: () => live.value.authentication,
      tokens: refreshTokens,
      maySweep,
      isDismissed: (spec) => directory.isDismissed(spec),
    }),
  );
  knownSessions.read(() => [[{}, sessions.size]]);
  directory.dismissed.subscribe((dismissed) => void sessions.dismiss(dismissed));
  const identityProviders = new IdentityProviders({ ...shared, types });
  return {
    users,
    passwords,
    directory,
    sessions,
    ...buildLogins({ ...cluster, refreshTokens, users, directory, maySweep }),
    passwordStore: new PasswordStore({ ...shared, directory }),
    passwordProviders: new PasswordProviders(identityProviders),
    redirectProviders: new RedirectProviders(identityProviders),
    linking: new Linking({ ...shared, directory }),
  };
}

interface LoginParts
  extends
    Pick<ClusterParts, 'client' | 'namespace' | 'live' | 'lifecycle' | 'clock' | 'log'>,
    Pick<TokenParts, 'refreshTokens'>,
    Pick<AccountParts, 'users' | 'directory'> {
  readonly maySweep: () => boolean;
}

function buildLogins(parts: LoginParts): Pick<AccountParts, 'limiter' | 'loginHistories'> {
  const { live, refreshTokens, directory, lifecycle, clock } = parts;
  const limit = () => live.value.authentication.loginLimit;
  const now = () => clock.now();
  const limiter = new LoginLimiter(limit, now, (text) => refreshTokens.mark(text));
  directory.unlocked.subscribe((account) => limiter.unlock(account));
  const sharedFailures = new SharedFailures({ ...parts, limiter, within: () => limit().within });
  const lastLogins = new LastLogins(parts);
  const loginHistories = new LoginHistories({
    ...parts,
    settings: () => live.value.authentication.loginHistory,
    loggedIn: (user, time) => lastLogins.note(user, time),
  });
  lifecycle.add('login-records', {
    start() {
      sharedFailures.start();
      loginHistories.start();
    },
    // Stops all components concurrently, because each component may take seconds to write its pending changes.
    async stop() {
      await Promise.all([sharedFailures.stop(), loginHistories.stop(), lastLogins.stop()]);
    },
  });
  return { limiter, loginHistories };
}
