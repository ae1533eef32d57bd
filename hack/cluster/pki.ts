/** Creates certificates for a throwaway cluster: ECDSA P-256, PEM. */
import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { createPrivateKey, KeyObject, webcrypto } from 'node:crypto';

export interface Pair {
  readonly certificate: string;
  readonly key: string;
}

export interface Authority extends Pair {
  issue(subject: Subject): Promise<Pair>;
}

/** Fields that Kubernetes reads from a certificate: user name, group, and for a server its host names and addresses. */
interface Subject {
  readonly commonName: string;
  readonly organization?: string;
  readonly server?: readonly string[];
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const lifetime = 3650 * 24 * 3600_000;

const validity = (): { notBefore: Date; notAfter: Date } => ({
  notBefore: new Date(Date.now() - 60_000),
  notAfter: new Date(Date.now() + lifetime),
});

const generate = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);

function pem(certificate: X509Certificate, key: webcrypto.CryptoKey): Pair {
  return { certificate: `${certificate.toString('pem')}\n`, key: privatePem(key) };
}

/** Encodes a key in the form SEC1, because fabric8 reads elliptic curve keys only in this form. */
const privatePem = (key: webcrypto.CryptoKey): string =>
  KeyObject.from(key).export({ type: 'sec1', format: 'pem' }).toString();

/** Generates the key pair that signs ServiceAccount tokens. */
export async function signingKey(): Promise<{ readonly key: string; readonly publicKey: string }> {
  const keys = await generate();
  const publicKey = PemConverter.encode(await webcrypto.subtle.exportKey('spki', keys.publicKey), 'PUBLIC KEY');
  return { key: privatePem(keys.privateKey), publicKey: `${publicKey}\n` };
}

export async function createAuthority(commonName: string): Promise<Authority> {
  const keys = await generate();
  const name = `CN=${commonName}`;
  const authority = await X509CertificateGenerator.createSelfSigned({
    name,
    keys,
    signingAlgorithm: algorithm,
    ...validity(),
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign | KeyUsageFlags.digitalSignature, true),
    ],
  });
  return authorityOf(authority, keys.privateKey);
}

/** Reads the authority of the clients of the control plane in `dir`. */
export async function readAuthority(dir: string): Promise<Authority> {
  const [certificate = '', key = ''] = await Promise.all(
    ['ca.crt', 'ca.key'].map((file) => readFile(join(dir, 'pki', file), 'utf8')),
  );
  return loadAuthority({ certificate, key });
}

/** Loads a certificate authority from its PEM. */
export function loadAuthority({ certificate, key }: Pair): Authority {
  const privateKey = createPrivateKey(key).toCryptoKey(algorithm, true, ['sign']);
  return authorityOf(new X509Certificate(certificate), privateKey);
}

function authorityOf(authority: X509Certificate, privateKey: webcrypto.CryptoKey): Authority {
  return {
    ...pem(authority, privateKey),
    async issue({ commonName: subject, organization, server }) {
      const own = await generate();
      const usages = server === undefined ? [ExtendedKeyUsage.clientAuth] : [ExtendedKeyUsage.serverAuth];
      const names = (server ?? []).map((value) => ({ type: isIP(value) ? 'ip' : 'dns', value }) as const);
      const certificate = await X509CertificateGenerator.create({
        subject: organization === undefined ? `CN=${subject}` : `O=${organization}, CN=${subject}`,
        issuer: authority.subject,
        publicKey: own.publicKey,
        signingKey: privateKey,
        signingAlgorithm: algorithm,
        ...validity(),
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          new ExtendedKeyUsageExtension(usages),
          ...(names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)]),
        ],
      });
      return pem(certificate, own.privateKey);
    },
  };
}
