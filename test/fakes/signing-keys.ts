/**
 * Signing keys for tests. RSA keys take long to generate, so these RSA keys are fixed. These keys are only for tests.
 */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { objectNames } from '../../src/config/names.ts';
import { keyNames, type MakeKey } from '../../src/tokens/signing-keys.ts';

const rsaKeys = [1, 2, 3].map((number) => readFileSync(join(import.meta.dirname, `keys/rsa-${number}.pem`)));

/** Returns a function that creates keys. RSA keys are not new: the function returns the three fixed keys in turn. */
export function keyMaker(): MakeKey {
  let made = 0;
  return async (alg) => {
    if (alg === 'RS256') return rsaKeys[made++ % rsaKeys.length] as Buffer;
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  };
}

const makeKey = keyMaker();
const pairs = keyNames.map(async ({ alg, current }) => [current, (await makeKey(alg)).toString('base64')] as const);

/** The Secret of the signing keys. A server that finds this Secret need not spend time on generating keys. */
export const signingKeysSecret = {
  metadata: { name: objectNames.signingKeysSecret },
  type: 'Opaque',
  data: Object.fromEntries(await Promise.all(pairs)),
};
