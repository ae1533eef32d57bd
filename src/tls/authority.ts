/** Our own certificate authority: one CA and one serving certificate, ECDSA P-256. */
import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
  X509Certificate as Issued,
} from '@peculiar/x509';
import { randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

/** PEM texts, as they stand in the Secret platform-serving-cert. */
export interface ServingMaterial {
  readonly 'ca.crt': string;
  readonly 'ca.key': string;
  readonly 'tls.crt': string;
  readonly 'tls.key': string;
}

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

/** RFC 5280 section 4.1.2.2: positive, at most 20 octets. */
const serialNumber = (): string => `01${randomBytes(15).toString('hex')}`;

async function newAuthority(now: number): Promise<{ cert: string; key: string }> {
  const keys = await newPair();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: 'CN=platform-apiserver-ca',
    notBefore: new Date(now - day),
    notAfter: new Date(now + authorityLife),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  return { cert: certificate.toString('pem'), key: await toPEM(keys.privateKey) };
}

/** A serving certificate for these DNS names and IP addresses, signed by the CA. */
async function newLeaf(
  authority: { cert: string; key: string },
  hosts: readonly string[],
  now: number,
): Promise<{ cert: string; key: string }> {
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
      new SubjectAlternativeNameExtension(
        hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host })),
      ),
    ],
  });
  return { cert: certificate.toString('pem'), key: await toPEM(keys.privateKey) };
}

/** A CA with its first serving certificate. */
export async function newMaterial(hosts: readonly string[], now: number): Promise<ServingMaterial> {
  return await renewed(
    await newAuthority(now).then(({ cert, key }) => ({ 'ca.crt': cert, 'ca.key': key })),
    hosts,
    now,
  );
}

/** The same CA with a new serving certificate. */
export async function renewed(
  authority: Pick<ServingMaterial, 'ca.crt' | 'ca.key'>,
  hosts: readonly string[],
  now: number,
): Promise<ServingMaterial> {
  const leaf = await newLeaf({ cert: authority['ca.crt'], key: authority['ca.key'] }, hosts, now);
  return { ...authority, 'tls.crt': leaf.cert, 'tls.key': leaf.key };
}

/** Whether the serving certificate must be made anew: a third of its life is left, or a name is missing. */
export function needsRenewal(cert: string, hosts: readonly string[], now: number): boolean {
  const leaf = new X509Certificate(cert);
  const [from, to] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()];
  if (now > to - (to - from) / 3) return true;
  return hosts.some((host) => (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) === undefined);
}
