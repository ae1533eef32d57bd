/** Cases that client-chain.test.ts does not cover: cross-signed CAs, and unusual but readable encodings. */
import 'reflect-metadata';
import { BasicConstraintsExtension, Extension, X509CertificateGenerator } from '@peculiar/x509';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { KeyObject, sign, webcrypto, X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { presentedChain, verifiedUntil, elementsIn } from '../../../../src/auth/authenticators/client-chain.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

interface Entity {
  readonly name: string;
  readonly keys: webcrypto.CryptoKeyPair;
}

const entity = async (name: string): Promise<Entity> => ({
  name: `CN=${name}`,
  keys: await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']),
});

const ca = [new BasicConstraintsExtension(true, undefined, true)];

async function certify(
  subject: Entity,
  issuer: Entity,
  extensions: readonly Extension[] = ca,
): Promise<X509Certificate> {
  const certificate = await X509CertificateGenerator.create({
    subject: subject.name,
    issuer: issuer.name,
    publicKey: subject.keys.publicKey,
    signingKey: issuer.keys.privateKey,
    signingAlgorithm: algorithm,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    extensions: [...extensions],
  });
  return new X509Certificate(certificate.toString('pem'));
}

let client: Entity;
let issuing: Entity;
let root: Entity;
let stranger: Entity;
beforeAll(async () => {
  [client, issuing, root, stranger] = (await Promise.all(['client', 'issuing', 'root', 'stranger'].map(entity))) as [
    Entity,
    Entity,
    Entity,
    Entity,
  ];
});

const isVerified = (
  leaf: X509Certificate,
  intermediates: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): boolean => verifiedUntil({ leaf, intermediates }, authorities, Date.now()) !== undefined;

describe('a client certificate whose CA has several certificates', () => {
  test.each<[string, () => Entity]>([
    ['an unknown CA', () => stranger],
    ['itself', () => issuing],
  ])(
    'a client certificate whose CA has several certificates is verified even if one CA certificate is signed by %s',
    async (_, other) => {
      const leaf = await certify(client, issuing, []);
      const [useless, useful] = await Promise.all([certify(issuing, other()), certify(issuing, root)]);
      const trusted = await certify(root, root);
      expect(isVerified(leaf, [useless, useful], [trusted])).toBe(true);
      expect(isVerified(leaf, [useful, useless], [trusted])).toBe(true);
      expect(isVerified(leaf, [useless], [trusted])).toBe(false);
    },
  );
});

test('a client certificate is verified while the request-header CA rotates to a new key under the same name', async () => {
  const renamed = { ...stranger, name: root.name };
  const [leaf, before, after] = await Promise.all([
    certify(client, root, []),
    certify(root, root),
    certify(renamed, renamed),
  ]);
  expect(isVerified(leaf, [], [after, before])).toBe(true);
  expect(isVerified(leaf, [], [before, after])).toBe(true);
  expect(isVerified(leaf, [], [after])).toBe(false);
});

/** Returns the extension basicConstraints with this DER value. */
const constraints = (hex: string): Extension => new Extension('2.5.29.19', true, Buffer.from(hex, 'hex'));

describe('the check of basicConstraints', () => {
  test.each<[string, string, Extension[]]>([
    ['accepts', 'has no basicConstraints', []],
    ['accepts', 'has empty basicConstraints', [constraints('3000')]],
    ['accepts', 'states explicitly that it is not a CA', [constraints('3003010100')]],
    ['accepts', 'has a path length without being a CA', [constraints('3003020100')]],
    ['rejects', 'is a CA', [constraints('30030101ff')]],
    ['rejects', 'has basicConstraints of an indefinite length', [constraints('30800000')]],
    ['rejects', 'has basicConstraints that end early', [constraints('3005')]],
  ])('the check of basicConstraints %s a leaf certificate that %s', async (outcome, _, extensions) => {
    const leaf = await certify(client, root, extensions);
    expect(isVerified(leaf, [], [await certify(root, root)])).toBe(outcome === 'accepts');
  });

  test.each<[string, string, string]>([
    ['accepts', 'basicConstraints in DER', '30030101ff'],
    ['rejects', 'basicConstraints that OpenSSL accepts but DER forbids', '30800101ff0000'],
    ['rejects', 'basicConstraints that state explicitly that it is not a CA', '3003010100'],
  ])('the check of basicConstraints %s a CA certificate with %s', async (outcome, _, hex) => {
    const authority = await certify(root, root, [constraints(hex)]);
    expect(isVerified(await certify(client, root, []), [], [authority])).toBe(outcome === 'accepts');
  });

  test('the check of basicConstraints accepts a leaf certificate without extensions, as created by openssl x509 -req', async () => {
    const leaf = await withoutExtensions(await certify(client, root, []), root);
    expect(isVerified(leaf, [], [await certify(root, root)])).toBe(true);
    expect(isVerified(leaf, [], [await certify(stranger, stranger)])).toBe(false);
  });
});

const element = (tag: number, content: Buffer): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(content.length);
  return Buffer.concat([Buffer.from([tag, 0x82]), length, content]);
};

/** Removes the version and the extensions from the certificate and signs it again. */
async function withoutExtensions(certificate: X509Certificate, issuer: Entity): Promise<X509Certificate> {
  const [whole] = elementsIn(certificate.raw);
  const [body, algorithmID] = elementsIn(whole?.content as Buffer);
  const kept = elementsIn(body?.content as Buffer).filter(({ tag }) => tag !== 0xa0 && tag !== 0xa3);
  const signed = element(0x30, Buffer.concat(kept.map(({ tag, content }) => element(tag, content))));
  const key = KeyObject.from(issuer.keys.privateKey);
  const signature = element(0x03, Buffer.concat([Buffer.alloc(1), sign('sha256', signed, key)]));
  return new X509Certificate(
    element(0x30, Buffer.concat([signed, element(0x30, algorithmID?.content as Buffer), signature])),
  );
}

test('a client certificate is valid from its notBefore to its notAfter time, both inclusive', async () => {
  const [leaf, authority] = await Promise.all([certify(client, root, []), certify(root, root)]);
  const verified = (now: number): number | undefined => verifiedUntil({ leaf, intermediates: [] }, [authority], now);
  const [from, until] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()];
  expect([from, until].map(verified)).toEqual([until, until]);
  expect([from - 1, until + 1].map(verified)).toEqual([undefined, undefined]);
});

describe('the certificate chain that a client presents', () => {
  interface Presented {
    readonly issuerCertificate?: Presented;
  }
  const presenting = (leaf: Presented | undefined): TLSSocket =>
    ({ getPeerX509Certificate: () => leaf }) as unknown as TLSSocket;

  test.each([
    [0, 0],
    [3, 3],
    [10, 10],
    [11, 10],
    [1_000, 10],
  ])(
    'a client certificate chain with %d certificates after the leaf is read up to certificate %d after the leaf',
    (count, expected) => {
      const others: Presented[] = [];
      for (let index = 0; index < count; index += 1) others.unshift({ issuerCertificate: others[0] as Presented });
      const leaf = { issuerCertificate: others[0] as Presented };
      const chain = presentedChain(presenting(leaf));
      expect(chain?.leaf).toBe(leaf);
      expect(chain?.intermediates).toEqual(others.slice(0, expected));
    },
  );

  test('presentedChain() returns undefined for a client without a certificate', () => {
    expect(presentedChain(presenting(undefined))).toBeUndefined();
  });
});
