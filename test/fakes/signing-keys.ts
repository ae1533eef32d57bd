/** Keys for tokens of tests: RSA keys take long to find, so there are some here, which are for nothing else. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { objectNames } from '../../src/config/names.ts';
import { keyNames, type MakeKey } from '../../src/tokens/signing-keys.ts';

const rsaKeys = [1, 2, 3].map((number) => readFileSync(join(import.meta.dirname, `keys/rsa-${number}.pem`)));

/** Makes a new key each time, of RSA one after the other of the three. */
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

/** The Secret of the signing keys: a server that finds it makes no keys of its own, which takes long. */
export const signingKeysSecret = {
  metadata: { name: objectNames.signingKeysSecret },
  type: 'Opaque',
  data: Object.fromEntries(await Promise.all(pairs)),
};
