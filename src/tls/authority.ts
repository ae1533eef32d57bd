/**
 * Our own certificate authority: a CA and one serving certificate. Long before the CA ends the next one is made and told to clients; it
 * signs when all have had time to hear of it, and the one before stays trusted until its end.
 */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

const day = 86_400_000;
/** A CA has so much left, at least, when the next one is made. */
const authorityRest = 730 * day;
/** So long a CA is told of before it signs: some clients are told by people. */
const announcement = 365 * day;
/** It signs so long before the end of the other one, at the latest. */
const lastMoment = 30 * day;

/** PEM texts, as they stand in the Secret platform-serving-cert. */
export interface ServingMaterial {
  readonly 'ca.crt': string;
  readonly 'ca.key': string;
  readonly 'tls.crt': string;
  readonly 'tls.key': string;
  /** The CA that will sign. */
  readonly 'next-ca.crt'?: string;
  readonly 'next-ca.key'?: string;
  /** The CA that has signed. */
  readonly 'previous-ca.crt'?: string;
}

/** A CA with its first serving certificate. */
export async function newMaterial(hosts: readonly string[], now: number): Promise<ServingMaterial> {
  const { newAuthority } = await import('./issuing.ts');
  const { cert, key } = await newAuthority(now);
  return await renewed({ 'ca.crt': cert, 'ca.key': key }, hosts, now);
}

/** The same CA with a new serving certificate. */
export async function renewed(
  authority: Omit<ServingMaterial, 'tls.crt' | 'tls.key'>,
  hosts: readonly string[],
  now: number,
): Promise<ServingMaterial> {
  const { newLeaf } = await import('./issuing.ts');
  const leaf = await newLeaf({ cert: authority['ca.crt'], key: authority['ca.key'] }, hosts, now);
  return { ...authority, 'tls.crt': leaf.cert, 'tls.key': leaf.key };
}

/** All CAs that clients shall trust: the same text until one is added or goes. */
export const trustedBy = (material: ServingMaterial): string =>
  [material['previous-ca.crt'], material['ca.crt'], material['next-ca.crt']]
    .filter((cert) => cert !== undefined)
    .map((cert) => cert.trim())
    .join('\n');

/** What is to be used now, with whatever of it is due made anew; the same object if nothing is. */
export async function upToDate(
  material: ServingMaterial,
  hosts: readonly string[],
  now: number,
): Promise<ServingMaterial> {
  let current = withoutEnded(material, now);
  if (current['next-ca.crt'] === undefined && lifeOf(current['ca.crt']).to - now < authorityRest) {
    const { newAuthority } = await import('./issuing.ts');
    const { cert, key } = await newAuthority(now);
    current = { ...current, 'next-ca.crt': cert, 'next-ca.key': key };
  }
  const { 'next-ca.crt': cert, 'next-ca.key': key, ...rest } = current;
  if (cert !== undefined && key !== undefined && now >= changeOver(current['ca.crt'], cert))
    return await renewed({ ...rest, 'ca.crt': cert, 'ca.key': key, 'previous-ca.crt': current['ca.crt'] }, hosts, now);
  return needsRenewal(current['tls.crt'], hosts, now) ? await renewed(current, hosts, now) : current;
}

/** When the next CA begins to sign. */
const changeOver = (cert: string, next: string): number =>
  Math.min(lifeOf(next).from + announcement, lifeOf(cert).to - lastMoment);

function withoutEnded(material: ServingMaterial, now: number): ServingMaterial {
  const { 'previous-ca.crt': previous, ...rest } = material;
  return previous === undefined || now < lifeOf(previous).to ? material : rest;
}

/** Milliseconds since the epoch. */
function lifeOf(cert: string): { readonly from: number; readonly to: number } {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return { from: validFromDate.getTime(), to: validToDate.getTime() };
}

/** Whether the serving certificate must be made anew: a third of its life is left, or a name is missing. */
export function needsRenewal(cert: string, hosts: readonly string[], now: number): boolean {
  const { from, to } = lifeOf(cert);
  if (now > to - (to - from) / 3) return true;
  const leaf = new X509Certificate(cert);
  return hosts.some((host) => (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) === undefined);
}
