/** Tests the keys and certificates of the local control plane (hack/cluster/pki.ts). */
import { expect, test } from '@jest/globals';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createAuthority, loadAuthority, signingKey } from '../../hack/cluster/pki.ts';

const sec1 = /^-----BEGIN EC PRIVATE KEY-----\n[^-]+\n-----END EC PRIVATE KEY-----\n$/;

test('private keys are written in the SEC1 format, which clients in Java can read', async () => {
  const authority = await createAuthority('ca');
  const { key } = await authority.issue({ commonName: 'admin' });
  for (const written of [authority.key, key, (await signingKey()).key]) expect(written).toMatch(sec1);
});

test.each(['sec1', 'pkcs8'] as const)(
  'loadAuthority() issues certificates with a key in the format %s',
  async (type) => {
    const { certificate, key } = await createAuthority('ca');
    const loaded = loadAuthority({
      certificate,
      key: createPrivateKey(key).export({ type, format: 'pem' }).toString(),
    });
    const issued = await loaded.issue({ commonName: 'admin' });
    const read = new X509Certificate(issued.certificate);
    expect(read.verify(new X509Certificate(certificate).publicKey)).toBe(true);
    expect(read.checkPrivateKey(createPrivateKey(issued.key))).toBe(true);
  },
);
