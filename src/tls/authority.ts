/** Our own certificate authority: one CA and one serving certificate. */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

/** PEM texts, as they stand in the Secret platform-serving-cert. */
export interface ServingMaterial {
  readonly 'ca.crt': string;
  readonly 'ca.key': string;
  readonly 'tls.crt': string;
  readonly 'tls.key': string;
}

/** A CA with its first serving certificate. */
export async function newMaterial(hosts: readonly string[], now: number): Promise<ServingMaterial> {
  const { newAuthority } = await import('./issuing.ts');
  const { cert, key } = await newAuthority(now);
  return await renewed({ 'ca.crt': cert, 'ca.key': key }, hosts, now);
}

/** The same CA with a new serving certificate. */
export async function renewed(
  authority: Pick<ServingMaterial, 'ca.crt' | 'ca.key'>,
  hosts: readonly string[],
  now: number,
): Promise<ServingMaterial> {
  const { newLeaf } = await import('./issuing.ts');
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
