import { afterEach, describe, expect, test } from '@jest/globals';
import type { Session } from '../../../../src/tokens/sessions/session.ts';
import type { Subject } from '../../../../src/tokens/subject.ts';
import type { AccessTokens, ValidToken } from '../../../../src/auth/authenticators/access-tokens.ts';
import { fingerprint } from '../../../../src/tokens/jwt.ts';
import { platformToken } from '../../../../src/auth/authenticators/platform-token.ts';
import type { TokenAuthenticator } from '../../../../src/auth/authenticators/authenticator.ts';
import type { UserInfo } from '../../../../src/auth/user.ts';
import { craftJWT, readJWT } from '../../../fakes/jwt.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const running: Accounts[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.stop()));
});

interface LoggedIn {
  readonly accounts: Accounts;
  readonly session: Session;
  readonly token: string;
  readonly authenticate: (token: string) => ReturnType<TokenAuthenticator>;
  /** Reports whether the token is found in the cache. */
  readonly isKnown: (token: string) => boolean;
}

async function logIn(): Promise<LoggedIn> {
  const accounts = await startAccounts();
  running.push(accounts);
  const { directory, sessions, tokens } = accounts;
  const account = directory.account('alice');
  if (account === undefined) throw new Error('alice is not configured');
  const { session } = await sessions.create({
    userName: account.username,
    userUID: account.uid,
    clientID: 'platform',
    credentialID: account.credentialID,
  });
  const { token } = tokens.issueAccess(session, account, undefined);
  const whole = platformToken(accounts.accessTokens);
  return {
    accounts,
    session,
    token,
    authenticate: async (presented) => whole.known?.(fingerprint(presented)) ?? (await whole(presented, '192.0.2.1')),
    isKnown: (presented) => whole.known?.(fingerprint(presented)) !== undefined,
  };
}

const refusal = {
  code: 401,
  headers: {
    'WWW-Authenticate': expect.stringMatching(
      /^Bearer realm="platform", error="invalid_token"(, error_description="[^"]+")?$/,
    ),
  },
};

describe('an access token of this server', () => {
  test('an access token of this server authenticates its user with the current groups of the user', async () => {
    const { accounts, session, token, authenticate } = await logIn();
    const user = await authenticate(token);
    expect(user).toEqual({
      username: 'alice',
      uid: readJWT(token).claims['sub'],
      groups: ['a', 'system:authenticated'],
      via: 'token',
      sessionID: session.metadata.name,
    });
    // Every request must get the same object, since the cache of access reviews uses this object as a key.
    expect(await authenticate(token)).toBe(user);
    accounts.configure({ users: [{ username: 'alice', groups: ['b'] }] });
    expect(await authenticate(token)).toMatchObject({ groups: ['b', 'system:authenticated'] });
  });

  test('an access token of this server is cached after it was verified', async () => {
    const { token, authenticate, isKnown } = await logIn();
    expect(isKnown(token)).toBe(false);
    await authenticate(token);
    expect(isKnown(token)).toBe(true);
  });

  // evidence: access-token-ends
  test.each<[string, (lab: LoggedIn) => Promise<void> | void]>([
    ['the session was revoked', ({ accounts, session }) => accounts.sessions.revoke(session.metadata.name)],
    [
      'the session was deleted',
      async ({ accounts, session }) => {
        accounts.cluster.delete(
          '/apis/iam.platform.io/v1alpha2/namespaces/platform-system/sessions',
          session.metadata.name,
        );
        await settle();
      },
    ],
    [
      'the user was disabled',
      ({ accounts }) => accounts.configure({ users: [{ username: 'alice', state: 'Disabled' }] }),
    ],
    ['the user was deleted', ({ accounts }) => accounts.configure({ users: [{ username: 'bob' }] })],
    [
      'the password was changed',
      ({ accounts }) =>
        accounts.configure({
          users: [{ username: 'alice', passwordHash: accounts.hashes.of('another password', 'bcrypt:4') }],
        }),
    ],
    [
      'the client was removed',
      ({ accounts }) => accounts.configure({ clients: [{ name: 'another', secret: 'x', grantTypes: ['password'] }] }),
    ],
    ['the token has expired', ({ accounts }) => accounts.clock.advance(3 * 3_600_000)],
  ])('an access token of this server is rejected with 401 as soon as %s', async (_, change) => {
    const lab = await logIn();
    await expect(lab.authenticate(lab.token)).resolves.toBeDefined();
    await change(lab);
    expect(lab.isKnown(lab.token)).toBe(false);
    await expect(lab.authenticate(lab.token)).rejects.toMatchObject(refusal);
  });

  // evidence: session-state-unknown
  test('an access token of this server gets 503 while its session cannot be read', async () => {
    const { accounts, token, authenticate } = await logIn();
    await settle();
    await authenticate(token);
    accounts.client.holdWatches();
    await accounts.clock.advance(15_001);
    await expect(authenticate(token)).rejects.toMatchObject({ code: 503, headers: { 'Retry-After': '1' } });
  });

  test('an access token of this server is rejected with 401 if it names a user or client other than that of its session', async () => {
    const { accounts, session, authenticate } = await logIn();
    accounts.configure({
      users: [{ username: 'alice' }, { username: 'bob' }],
      clients: ['platform', 'another'].map((name) => ({ name, secret: 'x', grantTypes: ['password'] })),
    });
    const { directory, tokens } = accounts;
    const [alice, bob] = [directory.account('alice'), directory.account('bob')];
    if (alice === undefined || bob === undefined) throw new Error('they are not configured');
    const another = { ...session, spec: { ...session.spec, clientID: 'another' } };
    const renamed = { ...alice, username: 'alice-before' };
    await expect(authenticate(tokens.issueAccess(session, alice, undefined).token)).resolves.toBeDefined();
    for (const { token } of [
      tokens.issueAccess(session, bob, undefined),
      tokens.issueAccess(session, renamed, undefined),
      tokens.issueAccess(another, alice, undefined),
    ])
      await expect(authenticate(token)).rejects.toMatchObject(refusal);
  });
});

// evidence: own-issuer-not-reviewed
test('a token that names this issuer but has a wrong signature is rejected with 401 without a TokenReview', async () => {
  const { authenticate } = await logIn();
  await expect(authenticate(craftJWT({ alg: 'ES256' }, { iss: issuer }))).rejects.toMatchObject(refusal);
});

test.each([['opaque'], [craftJWT({ alg: 'ES256' }, { iss: 'https://another.example' })], ['']])(
  'a token that this server did not issue is passed to the next authenticator: %j',
  async (token) => {
    const { authenticate } = await logIn();
    expect(await authenticate(token)).toBeUndefined();
  },
);

/** A valid token for a session with this name. */
const validToken = (sid: string, subject: Subject, session: Partial<Session['spec']> = {}): ValidToken =>
  ({ subject, claims: { sid }, session: { spec: session } }) as unknown as ValidToken;

const usersOf = (find: (key: string) => ValidToken): ((key: string) => UserInfo | undefined) => {
  const { known = (): undefined => undefined } = platformToken({ known: find } as unknown as AccessTokens);
  return known;
};

test('a ServiceAccount keeps its Kubernetes identity after a token exchange, and users and clients have no Kubernetes identity', () => {
  const robot: Subject = {
    username: 'system:serviceaccount:a:b',
    uid: '1',
    groups: [],
    displayName: undefined,
    email: undefined,
  };
  const via = (session: Partial<Session['spec']>): string | undefined =>
    usersOf((key) => validToken(key, { ...robot }, session))('s')?.via;
  expect(via({ subjectKind: 'ServiceAccount' })).toBe('token-review');
  expect(via({ subjectKind: 'Client' })).toBe('token');
  expect(via({})).toBe('token');
});

test('the oldest cached user object is evicted when a user has more than 1,000 sessions', () => {
  const alice: Subject = { username: 'alice', uid: '1', groups: [], displayName: undefined, email: undefined };
  const userOf = usersOf((key) => validToken(key, alice));
  const [first, other] = [userOf('first'), userOf('other')];
  expect([first?.sessionID, other?.sessionID]).toEqual(['first', 'other']);
  for (let index = 2; index < 1_001; index += 1) userOf(`session-${index}`);
  expect(userOf('first')).toBe(first);
  userOf('one more');
  expect(userOf('first')).not.toBe(first);
  expect(userOf('first')).toEqual(first);
});

async function identityToken(clientID: string): Promise<LoggedIn & { readonly identity: string }> {
  const lab = await logIn();
  const { directory, sessions, tokens } = lab.accounts;
  const account = directory.account('alice');
  if (account === undefined) throw new Error('alice is not configured');
  const { session } = await sessions.create({
    userName: account.username,
    userUID: account.uid,
    clientID,
    credentialID: account.credentialID,
  });
  const options = { scope: 'openid', nonce: undefined, alg: 'RS256' } as const;
  return { ...lab, session, identity: tokens.issueIdentity(session, account, options) };
}

describe('an id_token as a bearer token', () => {
  // evidence: id-token-bearer-ends
  test('an id_token of a client in gateway.idTokenClients authenticates its user until the session is revoked, and is then rejected with an error that gives the reason', async () => {
    const { accounts, session, identity, authenticate } = await identityToken('platform-cli');
    expect(await authenticate(identity)).toMatchObject({ username: 'alice', sessionID: session.metadata.name });
    expect(await authenticate(identity)).toMatchObject({ username: 'alice' });
    await accounts.sessions.revoke(session.metadata.name);
    await expect(authenticate(identity)).rejects.toMatchObject({
      code: 401,
      headers: { 'WWW-Authenticate': expect.stringContaining('error_description="the token was revoked') },
    });
  });

  test('an id_token of a client that is not in gateway.idTokenClients is rejected with an error that gives the reason', async () => {
    const { identity, authenticate } = await identityToken('platform');
    await expect(authenticate(identity)).rejects.toMatchObject({
      message: expect.stringContaining('the token is an id_token of the client "platform"'),
    });
  });
});
