/** Users and clients of the lab's configuration. None of these passwords and secrets is allowed to appear in a log. */
import { nativeHashFunctions } from '../../../src/accounts/passwords/passwords.ts';

export const passwords = {
  /** User with a bcrypt hash in the configuration. */
  alice: 'alice keeps 7431 bees',
  /** User with an argon2id hash in the configuration. */
  bob: 'bob’s über-geheim & 100% = + ?',
  /** User whose password hash is in the Secret carol-password. */
  carol: 'carol sails at 04:17',
  /** User who is disabled in the configuration. */
  dave: 'dave is not welcome here',
} as const;

export const clientSecrets = {
  /** Client that is allowed to use only the refresh token grant. */
  'refresh-only': 'nothing but refreshing 5519',
  /** Client with a bcrypt hash. */
  hashed: 'hashed secret 8823: with a colon & %41',
  /** Client whose secret is in the Secret referred-client. */
  referred: 'referred secret 1207',
} as const;

export const carolSecret = 'carol-password';
export const referredSecret = 'referred-client';

const cheap = 'bcrypt:4';
const bcrypt = (text: string): Promise<string> => nativeHashFunctions.hash(text, cheap);

/** Returns the chart's value `config`. */
export async function configuration(): Promise<object> {
  return {
    authentication: {
      // All tests use the same client address.
      loginLimit: { maxTries: 5, perAddress: 100_000, perClient: 100_000 },
      clients: [
        { name: 'platform', secret: 'platform', grantTypes: ['password', 'refresh_token'] },
        { name: 'refresh-only', secret: clientSecrets['refresh-only'], grantTypes: ['refresh_token'] },
        { name: 'hashed', secretHash: await bcrypt(clientSecrets.hashed) },
        { name: 'referred', secretRef: { name: referredSecret, key: 'secret' } },
      ],
      users: [
        {
          username: 'admin',
          passwordRef: { name: 'platform-admin', key: 'passwordHash' },
          groups: ['platform:admins'],
        },
        {
          username: 'alice',
          passwordHash: await bcrypt(passwords.alice),
          displayName: 'Alice Ö. Liddell',
          email: 'alice@example.com',
          groups: ['keepers', 'staff'],
        },
        { username: 'bob', passwordHash: await nativeHashFunctions.hash(passwords.bob, 'argon2id:19456:2:1') },
        { username: 'carol', passwordRef: { name: carolSecret, key: 'hash' } },
        { username: 'dave', passwordHash: await bcrypt(passwords.dave), state: 'Disabled' },
      ],
    },
  };
}

/** The Secrets that the configuration names. */
export const secrets = async (): Promise<Readonly<Record<string, Readonly<Record<string, string>>>>> => ({
  // The newline is the same as for `kubectl create secret --from-file` with a file that ends with a newline.
  [carolSecret]: { hash: `${await bcrypt(passwords.carol)}\n` },
  [referredSecret]: { secret: clientSecrets.referred },
});
