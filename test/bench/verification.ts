/**
 * Process that measures the cost of validating an access token: for a token that was validated before, and for a new
 * token. Prints a `Verification` and exits.
 */
import { generateKeyPairSync } from 'node:crypto';
import type { Session } from '../../src/tokens/sessions/session.ts';
import type { Algorithm, SigningKey, SigningKeys } from '../../src/tokens/signing-keys.ts';
import { fingerprint, Tokens } from '../../src/tokens/jwt.ts';
import { median } from './statistics.ts';

/** CPU time per token in microseconds. */
export interface Verification {
  readonly known: number;
  readonly fresh: Readonly<Record<Algorithm, number>>;
}

const rounds = 5;
const count = 2_000;
const issuer = 'https://platform.example';

function keysOf(): SigningKeys {
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const made = (['ES256', 'RS256'] as const).map((alg): SigningKey => {
    const { privateKey, publicKey } = alg === 'ES256' ? ec : rsa;
    return { kid: alg, alg, privateKey, publicKey };
  });
  const find = (name: string): SigningKey | undefined => made.find(({ kid }) => kid === name);
  return { generation: 1, find, current: find } as unknown as SigningKeys;
}

/** Returns the median CPU time per token over several runs. */
function cost(run: (index: number) => void): number {
  const times = Array.from({ length: rounds + 1 }, (_, round) => {
    const before = process.cpuUsage();
    for (let index = 0; index < count; index += 1) run(round * count + index);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / count;
  });
  return median(times.slice(1));
}

function assertAccepted(claims: unknown): void {
  if (claims === undefined) throw new Error('a valid token was rejected');
}

function measure(): Verification {
  const keys = keysOf();
  const day = 86_400_000;
  const settings = { issuer, accessTokenMaxAge: day, maximumClockSkew: 10_000 };
  const session = {
    metadata: { name: 'a'.repeat(32) },
    spec: { clientID: 'platform', expiresAt: new Date(Date.now() + day).toISOString() },
  } as unknown as Session;
  const subject = { username: 'alice', uid: 'u', groups: ['a', 'b'], displayName: undefined, email: undefined };
  const tokensOf = (signingAlgorithm: Algorithm): [Tokens, string[]] => {
    const tokens = new Tokens({
      keys,
      idTokenClients: () => [],
      settings: () => ({ ...settings, signingAlgorithm }),
      clock: Date.now,
    });
    const all = Array.from(
      { length: (rounds + 1) * count },
      () => tokens.issueAccess(session, subject, 'openid').token,
    );
    return [tokens, all];
  };
  const fresh = (alg: Algorithm): number => {
    const [tokens, all] = tokensOf(alg);
    return cost((index) => assertAccepted(tokens.verifyAccess(all[index] ?? '')));
  };
  const [tokens, all] = tokensOf('ES256');
  for (const token of all) assertAccepted(tokens.verifyAccess(token));
  return {
    fresh: { ES256: fresh('ES256'), RS256: fresh('RS256') },
    // The authenticator also computes the fingerprint for each request and looks up the token by this fingerprint.
    known: cost((index) => assertAccepted(tokens.known(fingerprint(all[index] ?? '')))),
  };
}

process.stdout.write(JSON.stringify(measure()));
