/**
 * Verifies the certificate of a TLS client as kube-apiserver does: like x509.Certificate.Verify of Go with
 * ExtKeyUsageClientAuth, and with the other certificates of the client as intermediates (k8s.io/apiserver
 * pkg/authentication/request/x509). Node's own verification is not used: it follows OpenSSL's rules, runs only once per
 * handshake, and tries only one issuer per name (ADR 10). The rules here are stricter than those of Go: a CA cannot be
 * a client, authorityKeyIdentifier must identify the issuer, and a CA with name constraints is refused.
 */
import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';

/** A DER element (ITU-T X.690). The parser supports only elements of certificates that OpenSSL has already parsed. */
interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/** Parses consecutive elements. Throws for indefinite lengths, and for elements that extend beyond the bytes. */
export function elementsIn(bytes: Buffer): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes.readUInt8(at);
    const first = bytes.readUInt8(at + 1);
    const octets = first < 0x80 ? 0 : first - 0x80;
    if (first === 0x80) throw new RangeError('element of indefinite length');
    const length = octets === 0 ? first : bytes.readUIntBE(at + 2, octets);
    const begin = at + 2 + octets;
    at = begin + length;
    if (at > bytes.length) throw new RangeError('element exceeds the end');
    elements.push({ tag, content: bytes.subarray(begin, at) });
  }
  return elements;
}

export interface PresentedChain {
  readonly leaf: X509Certificate;
  /** Intermediates in any order, possibly with unrelated certificates. */
  readonly intermediates: readonly X509Certificate[];
}

const maxIntermediates = 10;
/** Maximum number of signatures that are verified for one chain. */
const maxSignatures = 30;

/**
 * Returns the chain that the client presented, if any. Call this function only once per connection, because Node
 * forgets the intermediates.
 */
export function presentedChain(socket: TLSSocket): PresentedChain | undefined {
  const leaf = socket.getPeerX509Certificate();
  if (leaf === undefined) return undefined;
  const intermediates: X509Certificate[] = [];
  let next = leaf.issuerCertificate;
  for (; next !== undefined && intermediates.length < maxIntermediates; next = next.issuerCertificate)
    intermediates.push(next);
  return { leaf, intermediates };
}

/** Returns the time until which the chain is valid, in milliseconds since the epoch; undefined if it is invalid. */
export function verifiedUntil(
  { leaf, intermediates }: PresentedChain,
  authorities: readonly X509Certificate[],
  now: number,
): number | undefined {
  let signatures = 0;

  /**
   * Extends the chain, which starts with the leaf, to a trusted authority. Returns the time until which the chain is
   * valid; undefined if no such chain exists.
   */
  function search(chain: readonly X509Certificate[], until: number): number | undefined {
    const child = chain.at(-1) as X509Certificate;
    if (authorities.some((authority) => isSame(authority, child))) return until;
    if (detailsOf(child)?.isWeaklySigned !== false) return undefined;
    for (const issuer of [...authorities, ...intermediates]) {
      if (chain.some((one) => isSame(one, issuer)) || !mayIssue(issuer, chain.length - 1, now)) continue;
      if (child.issuer !== issuer.subject || !child.checkIssued(issuer)) continue;
      signatures += 1;
      if (signatures > maxSignatures) return undefined;
      if (!child.verify(issuer.publicKey)) continue;
      const found = search([...chain, issuer], Math.min(until, issuer.validToDate.getTime()));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  if (detailsOf(leaf)?.isCA !== false || !mayBeIn(leaf, now)) return undefined;
  return search([leaf], leaf.validToDate.getTime());
}

const isSame = (one: X509Certificate, other: X509Certificate): boolean => one.raw.equals(other.raw);

/**
 * Returns true if the certificate is allowed to be an issuer (RFC 5280 section 4.2.1.9) with `below` intermediates
 * between the issuer and the leaf.
 */
function mayIssue(certificate: X509Certificate, below: number, now: number): boolean {
  if (!certificate.ca || !mayBeIn(certificate, now)) return false;
  const { pathLength = Infinity } = detailsOf(certificate) ?? {};
  return below <= pathLength;
}

const clientAuth = '1.3.6.1.5.5.7.3.2';
const anyExtendedKeyUsage = '2.5.29.37.0';

/**
 * Returns whether a certificate passes the checks that apply to every certificate of a chain, including the authority.
 */
function mayBeIn(certificate: X509Certificate, now: number): boolean {
  const { validFromDate, validToDate, keyUsage: usages } = certificate;
  if (now < validFromDate.getTime() || now > validToDate.getTime()) return false;
  if (usages !== undefined && !usages.includes(clientAuth) && !usages.includes(anyExtendedKeyUsage)) return false;
  return detailsOf(certificate)?.isUnderstood === true;
}

interface Details {
  /** True if the signature uses MD5 or SHA-1. */
  readonly isWeaklySigned: boolean;
  /** True if there are no name constraints, and all critical extensions are among the understood ones. */
  readonly isUnderstood: boolean;
  /** True if basicConstraints mark a CA, regardless of keyUsage. */
  readonly isCA: boolean;
  readonly pathLength: number | undefined;
}

const details = new WeakMap<X509Certificate, Details | undefined>();

function detailsOf(certificate: X509Certificate): Details | undefined {
  if (!details.has(certificate)) details.set(certificate, readDetails(certificate.raw));
  return details.get(certificate);
}

/** DER-encoded object identifiers in hexadecimal. */
const basicConstraints = '551d13';
const nameConstraints = '551d1e';
/**
 * Understood extensions: basicConstraints, keyUsage (which `checkIssued` checks), extKeyUsage, subjectAltName and
 * certificatePolicies.
 */
const understood: ReadonlySet<string> = new Set([basicConstraints, '551d0f', '551d25', '551d11', '551d20']);
/**
 * Weak signature algorithms: md5WithRSAEncryption, sha1WithRSAEncryption, sha1WithRSASignature, ecdsa-with-SHA1 and
 * dsa-with-sha1.
 */
const weak: ReadonlySet<string> = new Set([
  '2a864886f70d010104',
  '2a864886f70d010105',
  '2b0e03021d',
  '2a8648ce3d0401',
  '2a8648ce380403',
]);
const tags = { boolean: 0x01, integer: 0x02, extensions: 0xa3 };

/** Reads a certificate (RFC 5280 section 4.1). Returns undefined if the certificate cannot be parsed. */
function readDetails(raw: Buffer): Details | undefined {
  try {
    const [certificate] = elementsIn(raw);
    const [body, algorithm] = elementsIn(certificate?.content as Buffer);
    const [algorithmID] = elementsIn(algorithm?.content as Buffer);
    const list = elementsIn(body?.content as Buffer).find(({ tag }) => tag === tags.extensions);
    const [extensions] = list === undefined ? [] : elementsIn(list.content);
    const isWeaklySigned = weak.has(algorithmID?.content.toString('hex') ?? '');
    let isUnderstood = true;
    let constraints: Pick<Details, 'isCA' | 'pathLength'> = { isCA: false, pathLength: undefined };
    for (const { content } of extensions === undefined ? [] : elementsIn(extensions.content)) {
      const parts = elementsIn(content);
      const id = parts[0]?.content.toString('hex') ?? '';
      const isCritical = parts[1]?.tag === tags.boolean && parts[1].content[0] !== 0;
      if (id === nameConstraints || (isCritical && !understood.has(id))) isUnderstood = false;
      if (id === basicConstraints) constraints = constraintsIn(parts.at(-1)?.content as Buffer);
    }
    return { isWeaklySigned, isUnderstood, ...constraints };
  } catch {
    return undefined;
  }
}

/** Reads basicConstraints (RFC 5280 section 4.2.1.9). */
function constraintsIn(value: Buffer): Pick<Details, 'isCA' | 'pathLength'> {
  const [sequence] = elementsIn(value);
  const parts = elementsIn(sequence?.content as Buffer);
  const length = parts.find(({ tag }) => tag === tags.integer)?.content;
  return {
    isCA: parts.some(({ tag, content }) => tag === tags.boolean && content[0] !== 0),
    pathLength: length?.readUIntBE(0, length.length),
  };
}
