/**
 * Verifies a serving certificate as kube-aggregator does (Go's x509.Certificate.Verify for the name of the Service).
 */
import { X509Certificate } from 'node:crypto';
import type { PresentedChain } from '../../auth/authenticators/client-chain.ts';

const serverAuth = '1.3.6.1.5.5.7.3.1';
const day = 86_400_000;
/**
 * Minimum remaining lifetime in milliseconds. A certificate with a shorter remaining lifetime is reported as not
 * renewed, because the server renews its own certificate long before that.
 */
const soon = 14 * day;

/** Returns the certificates in a PEM text. Throws if a certificate cannot be parsed. */
export const certificatesIn = (pem: string): X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  );

/** Returns the reason why a client that trusts the issuer would reject the certificate; undefined if there is none. */
export function leafProblem(leaf: X509Certificate, host: string, now: number): string | undefined {
  // Go ignores the common name.
  if (leaf.checkHost(host, { subject: 'never' }) === undefined)
    return `is not valid for ${host}, but for ${leaf.subjectAltName ?? 'no name'}`;
  if (now > leaf.validToDate.getTime()) return `expired on ${leaf.validToDate.toISOString()}`;
  if (now < leaf.validFromDate.getTime()) return `is not valid before ${leaf.validFromDate.toISOString()}`;
  const { keyUsage } = leaf;
  return keyUsage === undefined || keyUsage.includes(serverAuth) ? undefined : 'is not allowed to identify servers';
}

export const expiresSoon = (leaf: X509Certificate, now: number): boolean => leaf.validToDate.getTime() - now < soon;

/**
 * Returns whether one of the CAs signed the certificate, directly or through the intermediates, and all issuers are
 * valid CAs. `verifiedUntil` of client-chain.ts is not used, because it refuses certificates that kube-aggregator
 * accepts.
 */
export function isSignedBy(
  { leaf, intermediates }: PresentedChain,
  authorities: readonly X509Certificate[],
  now: number,
): boolean {
  const isIssuer = (child: X509Certificate, one: X509Certificate): boolean =>
    one.ca &&
    now >= one.validFromDate.getTime() &&
    now <= one.validToDate.getTime() &&
    child.checkIssued(one) &&
    child.verify(one.publicKey);
  const rest = [...intermediates];
  for (let child: X509Certificate | undefined = leaf; child !== undefined;) {
    const current: X509Certificate = child;
    if (authorities.some((one) => one.raw.equals(current.raw) || isIssuer(current, one))) return true;
    const at = rest.findIndex((one) => isIssuer(current, one));
    [child] = at === -1 ? [] : rest.splice(at, 1);
  }
  return false;
}
