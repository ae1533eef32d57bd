import { beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { Account } from '../../../src/accounts/directory/account.ts';
import type { Session } from '../../../src/tokens/sessions/session.ts';
import { SigningKeys, type MakeKey } from '../../../src/tokens/signing-keys.ts';
import { fingerprint, Tokens, type TokenSettings } from '../../../src/tokens/jwt.ts';
import { kubernetesAudience } from '../../../src/config/names.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { craftJWT, readJWT } from '../../fakes/jwt.ts';
import { keyMaker } from '../../fakes/signing-keys.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const issuer = 'https://platform.example';
const now = 1_800_000_000;
const hour = 3_600;
const secrets = '/api/v1/namespaces/platform-system/secrets';

const account: Account = {
  username: 'alice',
  uid: 'uid-alice',
  groups: ['a', 'b'],
  displayName: 'Alice A.',
  email: 'alice@example.com',
  active: true,
  passwordChangeRequired: false,
  passwordHash: undefined,
  passwordRef: undefined,
  unlocked: undefined,
  identities: [],
  credentialID: 'c1',
};

const sessionWith = (spec: Partial<Session['spec']> = {}): Session => ({
  metadata: { name: 'session-1' },
  spec: {
    userName: 'alice',
    userUID: 'uid-alice',
    clientID: 'platform',
    credentialID: 'c1',
    createdAt: new Date((now - hour) * 1_000).toISOString(),
    expiresAt: new Date((now + 24 * hour) * 1_000).toISOString(),
    ...spec,
  },
  status: { phase: 'Active' },
});

async function keysIn(cluster: MemoryCluster, makeKey: MakeKey): Promise<SigningKeys> {
  const log = createLogger({ silent: true });
  const client = cluster.client();
  const started = new SigningKeys({ client, namespace: 'platform-system', makeKey, clock: new FakeClock(), log });
  await started.start();
  return started;
}

let keys: SigningKeys;
beforeAll(async () => {
  keys = await keysIn(new MemoryCluster(), keyMaker());
  keys.stop();
});

interface Lab {
  readonly tokens: Tokens;
  readonly settings: { -readonly [K in keyof TokenSettings]: TokenSettings[K] };
  /** Sets the clock to this many seconds after `now`. */
  readonly at: (seconds: number) => void;
}

function lab(changes: Partial<TokenSettings> = {}, signedBy = keys): Lab {
  let clock = now * 1_000;
  const settings = {
    issuer,
    signingAlgorithm: 'ES256' as const,
    accessTokenMaxAge: 2 * hour * 1_000,
    maximumClockSkew: 10_000,
    ...changes,
  };
  return {
    tokens: new Tokens({
      keys: signedBy,
      settings: () => settings,
      idTokenClients: () => ['platform-cli'],
      clock: () => clock,
    }),
    settings,
    at: (seconds) => {
      clock = (now + seconds) * 1_000;
    },
  };
}

/** Returns the options of an id_token. */
const identity = (scope: string, nonce?: string): { scope: string; nonce: string | undefined; alg: 'RS256' } => ({
  scope,
  nonce,
  alg: 'RS256',
});

describe('an access token', () => {
  // evidence: jwt-access-token
  test.each(['ES256', 'RS256'] as const)(
    'an access token signed with %s has the format of RFC 9068 and is valid',
    (signingAlgorithm) => {
      const { tokens } = lab({ signingAlgorithm });
      const { token, expiresIn } = tokens.issueAccess(
        sessionWith({ scope: 'openid groups' }),
        account,
        'openid groups',
      );
      const { header, claims } = readJWT(token);
      expect(header).toEqual({ typ: 'at+jwt', alg: signingAlgorithm, kid: keys.current(signingAlgorithm).kid });
      expect(claims).toEqual({
        iss: issuer,
        aud: issuer,
        sub: 'uid-alice',
        sid: 'session-1',
        client_id: 'platform',
        scope: 'openid groups',
        username: 'alice',
        groups: ['a', 'b'],
        iat: now,
        exp: now + 2 * hour,
        jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
      expect(expiresIn).toBe(2 * hour);
      expect(tokens.verifyAccess(token)).toEqual({
        type: 'access',
        aud: issuer,
        jti: expect.any(String),
        scope: 'openid groups',
        iat: now,
        sub: 'uid-alice',
        sid: 'session-1',
        username: 'alice',
        clientID: 'platform',
        exp: now + 2 * hour,
      });
    },
  );

  // evidence: jwt-password-change
  test.each([
    ['this server', undefined],
    ['kube-apiserver', kubernetesAudience],
  ])('an access token for %s of a user who must change the password is valid only for that change', (_, audience) => {
    const { tokens } = lab();
    const subject = { ...account, passwordChangeRequired: true };
    const { token } = tokens.issueAccess(sessionWith(), subject, undefined, audience);
    expect(readJWT(token).claims).toMatchObject({ aud: 'password-change' });
    expect(tokens.verifyBearer(token)).toMatchObject({ type: 'access', sub: 'uid-alice' });
  });

  // evidence: jwt-scope-absent
  test('an access token without a scope has no scope claim', () => {
    expect(readJWT(lab().tokens.issueAccess(sessionWith(), account, undefined).token).claims).not.toHaveProperty(
      'scope',
    );
  });

  test.each([
    ['this server', 2 * hour, 2 * hour, undefined],
    ['kube-apiserver', 2 * hour, 600, kubernetesAudience],
    ['kube-apiserver', 300, 300, kubernetesAudience],
  ])('an access token for %s with the configured lifetime %d s is valid for %d s', (_, configured, life, audience) => {
    const { tokens } = lab({ accessTokenMaxAge: configured * 1_000 });
    expect(tokens.issueAccess(sessionWith(), account, undefined, audience).expiresIn).toBe(life);
  });

  test('an access token does not outlive its session, and expires with the session', () => {
    const { tokens } = lab();
    const session = sessionWith({ expiresAt: new Date((now + 90) * 1_000 + 700).toISOString() });
    const { token, expiresIn } = tokens.issueAccess(session, account, undefined);
    expect([expiresIn, readJWT(token).claims['exp']]).toEqual([90, now + 90]);
  });

  // evidence: jwt-id-unique
  test('access tokens for the same session always differ', () => {
    const { tokens } = lab();
    const issued = Array.from({ length: 20 }, () => tokens.issueAccess(sessionWith(), account, undefined).token);
    expect(new Set(issued.map((token) => readJWT(token).claims['jti'])).size).toBe(20);
  });

  // evidence: jwt-clock-skew
  test.each([
    ['valid', 0],
    ['valid', 2 * hour - 1],
    ['valid', 2 * hour + 9],
    ['invalid', 2 * hour + 10],
    ['invalid', 3 * hour],
    // The server never compares `iat` with the clock.
    ['valid', -hour],
  ])(
    'an access token for two hours, with an allowed clock skew of 10 s, is %s %d seconds after it was issued',
    (outcome, seconds) => {
      const good = outcome === 'valid';
      const { tokens, at } = lab();
      const { token } = tokens.issueAccess(sessionWith(), account, undefined);
      at(seconds);
      expect(tokens.verifyAccess(token) !== undefined).toBe(good);
      at(0);
      expect(tokens.verifyAccess(token)).toBeDefined();
      at(seconds);
      expect(tokens.verifyAccess(token) !== undefined).toBe(good);
      expect(tokens.known(fingerprint(token)) !== undefined).toBe(good);
    },
  );

  test.each([
    ['valid', 69],
    ['invalid', 70],
  ])(
    'a cached access token for 60 s, with an allowed clock skew of 10 s, is %s %d s after it was issued',
    (outcome, seconds) => {
      const good = outcome === 'valid';
      const { tokens, at } = lab({ accessTokenMaxAge: 60_000 });
      const { token } = tokens.issueAccess(sessionWith(), account, undefined);
      expect(tokens.verifyAccess(token)).toBeDefined();
      at(seconds);
      expect(tokens.known(fingerprint(token)) !== undefined).toBe(good);
      expect(tokens.verifyAccess(token) !== undefined).toBe(good);
    },
  );

  test('the claims of an access token are cached by the fingerprint of the token after its verification', () => {
    const { tokens } = lab();
    const { token } = tokens.issueAccess(sessionWith(), account, undefined);
    expect(tokens.known(fingerprint(token))).toBeUndefined();
    const claims = tokens.verifyAccess(token);
    expect(tokens.known(fingerprint(token))).toBe(claims);
  });

  // evidence: jwt-tampering
  test('an access token with any changed character is rejected', () => {
    const { tokens } = lab();
    const { token } = tokens.issueAccess(sessionWith(), account, undefined);
    // The last characters of a part may hold unused bits.
    const position = fc.nat(token.length - 1).filter((at) => !/^..?(\.|$)/.test(token.slice(at)) && token[at] !== '.');
    fc.assert(
      fc.property(position, fc.constantFrom('A', 'B', '-', '.', ' ', 'é'), (at, character) => {
        fc.pre(token[at] !== character);
        expect(tokens.verifyAccess(`${token.slice(0, at)}${character}${token.slice(at + 1)}`)).toBeUndefined();
      }),
    );
  });

  // evidence: jwt-other-issuer
  test('an access token of a previous issuer of this server is rejected, even if the token was verified before', () => {
    const { tokens, settings } = lab();
    const { token } = tokens.issueAccess(sessionWith(), account, undefined);
    expect([tokens.isOurs(token), tokens.verifyAccess(token) !== undefined]).toEqual([true, true]);
    settings.issuer = 'https://another.example';
    expect([tokens.isOurs(token), tokens.verifyAccess(token) !== undefined]).toEqual([false, false]);
    expect(tokens.known(fingerprint(token))).toBeUndefined();
  });

  test('an access token for kube-apiserver is rejected after the issuer has changed, even if the token was verified before', () => {
    const { tokens, settings } = lab();
    const { token } = tokens.issueAccess(sessionWith(), account, undefined, kubernetesAudience);
    expect(tokens.verifyForAny(token)).toMatchObject({ aud: kubernetesAudience });
    settings.issuer = 'https://another.example';
    expect(tokens.verifyForAny(token)).toBeUndefined();
    settings.issuer = issuer;
    expect(tokens.verifyForAny(token)).toMatchObject({ aud: kubernetesAudience });
  });
});

test('an access token is rejected after its signing key was replaced, even if the token was verified before', async () => {
  const [cluster, elsewhere] = [new MemoryCluster(), new MemoryCluster()];
  const makeKey = keyMaker();
  const own = await keysIn(cluster, makeKey);
  const other = await keysIn(elsewhere, makeKey);
  other.stop();
  const { tokens } = lab({}, own);
  const { token } = tokens.issueAccess(sessionWith(), account, undefined);
  await settle();
  expect(tokens.verifyAccess(token)).toBeDefined();
  for (const secret of elsewhere.list(secrets)) cluster.put(secrets, secret);
  await settle();
  own.stop();
  expect(tokens.known(fingerprint(token))).toBeUndefined();
  expect(tokens.verifyAccess(token)).toBeUndefined();
});

describe('token verification', () => {
  const claims = {
    iss: issuer,
    aud: issuer,
    sub: 'uid-alice',
    sid: 'session-1',
    client_id: 'platform',
    username: 'alice',
    exp: now + hour,
    iat: now,
    jti: 'jti-1',
  };
  type Forgery = () => string;
  const signed =
    (header: object, changes: object = {}, alg: 'ES256' | 'RS256' = 'ES256'): Forgery =>
    () => {
      const key = keys.current(alg);
      return craftJWT({ typ: 'at+jwt', alg, kid: key.kid, ...header }, { ...claims, ...changes }, key.privateKey);
    };
  const without = (name: keyof typeof claims): Forgery => signed({}, { [name]: undefined });

  // evidence: jwt-unknown-claims
  test('token verification accepts a token with a correct header and correct claims', () => {
    expect(lab().tokens.verifyAccess(signed({})())).toBeDefined();
  });

  // evidence: jwt-rejected
  test.each<[string, Forgery]>([
    ['has no algorithm', signed({ alg: 'none' })],
    ['has no signature', () => `${craftJWT({ typ: 'at+jwt', alg: 'none' }, claims).split('.').slice(0, 2).join('.')}.`],
    [
      'is signed with the public key as a shared secret',
      () => {
        const key = keys.current('RS256');
        const content = craftJWT({ typ: 'at+jwt', alg: 'HS256', kid: key.kid }, claims)
          .split('.')
          .slice(0, 2)
          .join('.');
        const pem = key.publicKey.export({ type: 'spki', format: 'pem' });
        return `${content}.${createHmac('sha256', pem).update(content).digest('base64url')}`;
      },
    ],
    ['names another algorithm than that of the key', signed({ alg: 'RS256' })],
    ['names the key of another algorithm', () => signed({ kid: keys.current('RS256').kid })()],
    ['names an unknown key', signed({ kid: 'unknown' })],
    ['names no key', signed({ kid: undefined })],
    ...['../../../../dev/null', "x' UNION SELECT 'key", '__proto__', 'constructor', '', ['x'], { x: 1 }, null].map(
      (kid): [string, Forgery] => [`names the key ${JSON.stringify(kid)}`, signed({ kid })],
    ),
    [
      'refers to its key by URL',
      () => {
        const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
        const at = { jku: 'https://evil.example/keys', x5u: 'https://evil.example/c', kid: keys.current('ES256').kid };
        return craftJWT({ typ: 'at+jwt', alg: 'ES256', ...at }, claims, privateKey);
      },
    ],
    ['has an unknown critical header', signed({ crit: ['x'], x: 1 })],
    ['has an nbf that is not a number', signed({}, { nbf: 'soon' })],
    [
      'contains its own key',
      () => {
        const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
        const jwk = publicKey.export({ format: 'jwk' });
        return craftJWT({ typ: 'at+jwt', alg: 'ES256', kid: keys.current('ES256').kid, jwk }, claims, privateKey);
      },
    ],
    ['has the type of an id_token', signed({ typ: 'JWT' })],
    ['has no type', signed({ typ: undefined })],
    ['is of another issuer', signed({}, { iss: 'https://another.example' })],
    ['is for another audience', signed({}, { aud: 'platform' })],
    ['is for kube-apiserver', signed({}, { aud: ['kubernetes'] })],
    ['has expired', signed({}, { exp: now - 11 })],
    ['is not valid yet', signed({}, { nbf: now + 11 })],
    ['has an exp that is not a number', signed({}, { exp: 'never' })],
    ['has a username that is not a string', signed({}, { username: ['alice'] })],
    ['has an iat that is not a number', signed({}, { iat: 'once' })],
    ...(['iss', 'aud', 'sub', 'sid', 'client_id', 'username', 'exp', 'iat', 'jti'] as const).map(
      (name): [string, Forgery] => [`has no ${name}`, without(name)],
    ),
    ['is longer than the limit', signed({}, { padding: 'x'.repeat(20_000) })],
    ['is not a JWT', () => 'opaque'],
    ['is empty', () => ''],
    ['has two parts', () => 'e30.e30'],
  ])('token verification rejects a token that %s', (_, forge) => {
    expect(lab().tokens.verifyAccess(forge())).toBeUndefined();
  });

  // evidence: jwt-repeated-claim
  test('token verification rejects a token with a repeated claim unless the last value of the claim is right', () => {
    const key = keys.current('ES256');
    const header = craftJWT({ typ: 'at+jwt', alg: 'ES256', kid: key.kid }, {}).split('.')[0] ?? '';
    const twice = (first: string, last: string): string => {
      const text = JSON.stringify(claims).replace(`"iss":"${issuer}"`, `"iss":"${first}","iss":"${last}"`);
      const content = `${header}.${Buffer.from(text).toString('base64url')}`;
      const signature = sign('sha256', Buffer.from(content), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
      return `${content}.${signature.toString('base64url')}`;
    };
    const { tokens } = lab();
    expect(tokens.verifyAccess(twice('https://another.example', issuer))).toBeDefined();
    expect(tokens.verifyAccess(twice(issuer, 'https://another.example'))).toBeUndefined();
  });

  // evidence: jwt-id-token
  test('token verification rejects an id_token of this server', () => {
    const { tokens } = lab();
    const session = sessionWith({ clientID: issuer, scope: 'openid' });
    expect(tokens.verifyAccess(tokens.issueIdentity(session, account, identity('openid')))).toBeUndefined();
  });

  // evidence: jwt-malformed
  test.each(['Na.a.', 'Na.a.a', 'e30.a.', 'e30.bm8.x', 'bnVsbA.bnVsbA.', '..', '.', ''])(
    'token verification rejects malformed text that resembles a token: %j',
    (text) => {
      const { tokens } = lab();
      expect(tokens.verifyAccess(text)).toBeUndefined();
      expect(tokens.isOurs(text)).toBe(false);
    },
  );

  test('the issuer of a token is recognized only if the token is at most 16 KiB long', () => {
    const { tokens } = lab();
    // `isOurs` does not verify the signature.
    const whole = signed({})();
    expect([16_384, 16_385].map((length) => tokens.isOurs(whole.padEnd(length, 'A')))).toEqual([true, false]);
  });

  test('token verification and the recognition of the issuer never throw', () => {
    const { tokens } = lab();
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[\w-]{0,20}\.[\w-]{0,20}\.[\w-]{0,20}$/)), (text) => {
        expect(tokens.verifyAccess(text)).toBeUndefined();
        expect(tokens.isOurs(text)).toBe(false);
      }),
    );
  });
});

describe('an id_token', () => {
  test.each([
    ['openid', {}],
    ['openid profile', { preferred_username: 'alice', name: 'Alice A.' }],
    ['openid email', { email: 'alice@example.com', email_verified: true }],
    ['openid groups', { groups: ['a', 'b'] }],
  ])('an id_token for the scope %s contains only the claims of that scope', (scope, more) => {
    const { tokens } = lab();
    // The scope of the login is wider than the requested scope of this token.
    const session = sessionWith({ scope: 'openid profile email groups' });
    const { header, claims } = readJWT(tokens.issueIdentity(session, account, identity(scope)));
    expect(header).toEqual({ typ: 'JWT', alg: 'RS256', kid: keys.current('RS256').kid });
    expect(claims).toEqual({
      iss: issuer,
      sub: 'uid-alice',
      aud: 'platform',
      sid: 'session-1',
      iat: now,
      auth_time: now - hour,
      exp: now + 2 * hour,
      ...more,
    });
  });

  test('an id_token of a user without a display name has the username in the claim "name", and omits a missing e-mail address', () => {
    const { tokens } = lab();
    const { claims } = readJWT(
      tokens.issueIdentity(
        sessionWith(),
        { ...account, displayName: undefined, email: undefined },
        identity('openid profile email'),
      ),
    );
    expect(claims).toMatchObject({ name: 'alice', preferred_username: 'alice' });
    expect(claims).not.toHaveProperty('email');
    expect(claims).not.toHaveProperty('email_verified');
  });

  test('an id_token is accepted at logout for its session, even after it has expired', () => {
    const { tokens, at } = lab();
    const token = tokens.issueIdentity(sessionWith(), account, identity('openid'));
    at(30 * 24 * hour);
    expect(tokens.readIdentity(token)).toMatchObject({ sub: 'uid-alice', aud: 'platform', sid: 'session-1' });
  });

  const claims = { iss: issuer, sub: 'uid-alice', aud: 'platform', sid: 'session-1', iat: now, exp: now + hour };
  const crafted = (header: object, changes: object = {}): string => {
    const { kid, privateKey } = keys.current('RS256');
    return craftJWT({ typ: 'JWT', alg: 'RS256', kid, ...header }, { ...claims, ...changes }, privateKey);
  };

  test.each<[string, string, () => string]>([
    ['is not modified', 'accepted', () => crafted({})],
    ['has the type of an access token', 'rejected', () => crafted({ typ: 'at+jwt' })],
    [
      'is an access token of this server',
      'rejected',
      () => lab().tokens.issueAccess(sessionWith(), account, 'openid').token,
    ],
    ['has no subject', 'rejected', () => crafted({}, { sub: undefined })],
    ['has no session', 'rejected', () => crafted({}, { sid: undefined })],
    ['has a session that is not a string', 'rejected', () => crafted({}, { sid: 1 })],
    ['is for several clients', 'rejected', () => crafted({}, { aud: ['platform', 'other'] })],
    ['is of another issuer', 'rejected', () => crafted({}, { iss: 'https://another.example' })],
    ['names an unknown key', 'rejected', () => crafted({ kid: 'unknown' })],
    ['is longer than the limit', 'rejected', () => crafted({}, { padding: 'x'.repeat(20_000) })],
    ['is not a JWT', 'rejected', () => 'opaque'],
  ])('an id_token that %s is %s at a logout', (_, outcome, forge) => {
    expect(lab().tokens.readIdentity(forge()) !== undefined).toBe(outcome === 'accepted');
  });
});

const issue = (clientID: string, alg: 'RS256' | 'ES256' = 'RS256'): string =>
  lab().tokens.issueIdentity(sessionWith({ clientID }), account, { ...identity('openid'), alg });

describe('an id_token as a bearer token', () => {
  // evidence: id-token-bearer
  test.each(['RS256', 'ES256'] as const)(
    'an id_token of a client in idTokenClients that is sent as a bearer token is verified with %s',
    (alg) => {
      const { tokens } = lab();
      const token = issue('platform-cli', alg);
      expect(readJWT(token).header).toMatchObject({ alg, typ: 'JWT' });
      expect(tokens.verifyBearer(token)).toMatchObject({
        type: 'identity',
        clientID: 'platform-cli',
        sid: 'session-1',
      });
      expect(tokens.known(fingerprint(token))).toBeDefined();
      expect(tokens.verifyAccess(token)).toBeUndefined();
      expect(tokens.verifyForCluster(token)).toBeUndefined();
      expect(tokens.verifyForAny(token)).toBeUndefined();
    },
  );

  // evidence: id-token-unlisted
  test('an id_token of a client that is not in idTokenClients is rejected as a bearer token even when the token is cached, and the error gives the reason', () => {
    const { tokens } = lab();
    const token = issue('platform');
    for (let times = 0; times < 2; times += 1) {
      expect(tokens.verifyBearer(token)).toBeUndefined();
      expect(tokens.known(fingerprint(token))).toBeUndefined();
    }
    expect(tokens.problemOf(token)).toContain('the token is an id_token of the client "platform"');
  });

  test('an id_token expires with its session', () => {
    const { tokens } = lab();
    const session = sessionWith({ expiresAt: new Date((now + 60) * 1_000).toISOString() });
    expect(readJWT(tokens.issueIdentity(session, account, identity('openid'))).claims['exp']).toBe(now + 60);
  });
});

const access = (audience?: string): string =>
  lab().tokens.issueAccess(sessionWith(), account, undefined, audience).token;

describe('the reason why a bearer token is invalid', () => {
  // evidence: token-problem
  test.each([
    ['that has expired', undefined, 3 * hour, /^the token expired at \d{4}-/],
    ['for kube-apiserver', kubernetesAudience, 0, /for the audience "kubernetes"/],
    ['for another resource server', 'https://files.example', 0, /for the audience "https:\/\/files\.example"/],
    ['that is valid but rejected', undefined, 0, /^the token was revoked, or its user or client was removed$/],
  ])('the error for a bearer token %s gives the reason', (_, audience, seconds, problem) => {
    const { tokens, at } = lab();
    const token = access(audience);
    at(seconds);
    expect(tokens.problemOf(token)).toMatch(problem);
  });

  test.each([
    ['whose signature is wrong', (token: string) => `${token.slice(0, -8)}AAAAAAAA`],
    ['whose claims were changed', (token: string) => token.replace(/\.[^.]+\./, '.e30.')],
    ['that is not a JWT', () => 'secret'],
  ])('the error for a bearer token %s gives no reason', (_, change) => {
    expect(lab().tokens.problemOf(change(access()))).toBeUndefined();
  });
});
