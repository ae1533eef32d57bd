/**
 * Issues CAs and serving certificates with ECDSA P-256 keys. Import this module only when needed: the library is large,
 * and issuing is rare.
 */
import 'reflect-metadata';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
  X509Certificate as Issued,
} from '@peculiar/x509';
import { randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';

const day = 86_400_000;
const authorityLife = 3_650 * day;
const leafLife = 365 * day;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

const newPair = async (): Promise<webcrypto.CryptoKeyPair> =>
  await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);

const toPEM = async (key: webcrypto.CryptoKey): Promise<string> =>
  PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');

const fromPEM = async (pem: string): Promise<webcrypto.CryptoKey> =>
  await webcrypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pem), algorithm, true, ['sign']);

/** Returns a serial number as RFC 5280 section 4.1.2.2 requires: positive, at most 20 octets. */
const serialNumber = (): string => `01${randomBytes(15).toString('hex')}`;

/** A certificate and its private key in PEM. */
interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** Creates a CA. */
export async function newAuthority(now: number): Promise<Pair> {
  const keys = await newPair();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    // The name is unique, because clients look up the issuer by name and trust two CAs during a rotation.
    name: `CN=platform-apiserver-ca@${Math.floor(now / 1_000)}`,
    notBefore: new Date(now - day),
    notAfter: new Date(now + authorityLife),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: certificate.toString('pem'), key: await toPEM(keys.privateKey) };
}

/** Issues a serving certificate for DNS names and IP addresses. */
export async function newLeaf(authority: Pair, hosts: readonly string[], now: number): Promise<Pair> {
  const keys = await newPair();
  const issuer = new Issued(authority.cert);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: 'CN=platform-apiserver',
    issuer: issuer.subject,
    notBefore: new Date(now - day),
    notAfter: new Date(Math.min(now + leafLife, issuer.notAfter.getTime())),
    signingKey: await fromPEM(authority.key),
    publicKey: keys.publicKey,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      new SubjectAlternativeNameExtension(
        hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host })),
      ),
    ],
  });
  return { cert: certificate.toString('pem'), key: await toPEM(keys.privateKey) };
}
