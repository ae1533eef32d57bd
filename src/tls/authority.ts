/**
 * The certificate authority of this server: a CA and one serving certificate. The next CA is created and published long
 * before the current CA expires. The next CA starts to sign once clients have had time to trust it. The previous CA
 * stays trusted until it expires.
 */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

const day = 86_400_000;
/** Remaining lifetime of a CA at which the next CA is created. */
const successorLead = 730 * day;
/**
 * Time for which a CA is published before it signs. The time is long, because administrators install the CA in some
 * clients by hand.
 */
const announcement = 365 * day;
/** Minimum remaining lifetime of a CA when the next CA starts to sign. */
const minOverlap = 30 * day;

/** PEM texts in the Secret platform-serving-cert. */
export interface ServingMaterial {
  readonly 'ca.crt': string;
  readonly 'ca.key': string;
  readonly 'tls.crt': string;
  readonly 'tls.key': string;
  /** CA that will sign next. */
  readonly 'next-ca.crt'?: string;
  readonly 'next-ca.key'?: string;
  /** CA that signed before. */
  readonly 'previous-ca.crt'?: string;
}

/** Creates a CA with its first serving certificate. */
export async function newMaterial(hosts: readonly string[], now: number): Promise<ServingMaterial> {
  const { newAuthority } = await import('./issuing.ts');
  const { cert, key } = await newAuthority(now);
  return await renew({ 'ca.crt': cert, 'ca.key': key }, hosts, now);
}

/** Issues a new serving certificate with the same CA. */
export async function renew(
  authority: Omit<ServingMaterial, 'tls.crt' | 'tls.key'>,
  hosts: readonly string[],
  now: number,
): Promise<ServingMaterial> {
  const { newLeaf } = await import('./issuing.ts');
  const leaf = await newLeaf({ cert: authority['ca.crt'], key: authority['ca.key'] }, hosts, now);
  return { ...authority, 'tls.crt': leaf.cert, 'tls.key': leaf.key };
}

/** Returns all CAs that clients must trust. The text changes only when a CA is added or removed. */
export const trustedBy = (material: ServingMaterial): string =>
  [material['previous-ca.crt'], material['ca.crt'], material['next-ca.crt']]
    .filter((cert) => cert !== undefined)
    .map((cert) => cert.trim())
    .join('\n');

/** Renews the CA and the serving certificate if they are due. Returns the same object if neither is due. */
export async function renewIfDue(
  material: ServingMaterial,
  hosts: readonly string[],
  now: number,
): Promise<ServingMaterial> {
  let current = withoutExpired(material, now);
  if (current['next-ca.crt'] === undefined && lifeOf(current['ca.crt']).to - now < successorLead) {
    const { newAuthority } = await import('./issuing.ts');
    const { cert, key } = await newAuthority(now);
    current = { ...current, 'next-ca.crt': cert, 'next-ca.key': key };
  }
  const { 'next-ca.crt': cert, 'next-ca.key': key, ...rest } = current;
  if (cert !== undefined && key !== undefined && now >= switchTime(current['ca.crt'], cert))
    return await renew({ ...rest, 'ca.crt': cert, 'ca.key': key, 'previous-ca.crt': current['ca.crt'] }, hosts, now);
  return needsRenewal(current['tls.crt'], hosts, now) ? await renew(current, hosts, now) : current;
}

/** Returns the time when the next CA starts to sign. */
const switchTime = (cert: string, next: string): number =>
  Math.min(lifeOf(next).from + announcement, lifeOf(cert).to - minOverlap);

function withoutExpired(material: ServingMaterial, now: number): ServingMaterial {
  const { 'previous-ca.crt': previous, ...rest } = material;
  return previous === undefined || now < lifeOf(previous).to ? material : rest;
}

/** Returns the validity period of a certificate, in milliseconds since the epoch. */
function lifeOf(cert: string): { readonly from: number; readonly to: number } {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return { from: validFromDate.getTime(), to: validToDate.getTime() };
}

/** Returns whether the serving certificate has less than a third of its lifetime left, or lacks one of the hosts. */
export function needsRenewal(cert: string, hosts: readonly string[], now: number): boolean {
  const { from, to } = lifeOf(cert);
  if (now > to - (to - from) / 3) return true;
  const leaf = new X509Certificate(cert);
  return hosts.some((host) => (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) === undefined);
}
