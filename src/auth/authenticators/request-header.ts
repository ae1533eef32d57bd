/**
 * The aggregator: a front-proxy certificate plus X-Remote-* headers. Believed only when the leaf certificate verifies against the
 * request-header CA alone; Node's own `socket.authorized` is never asked, because it knows other CAs.
 */
import type { Request } from 'express';
import { X509Certificate } from 'node:crypto';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { RequestHeaderConfig } from '../request-header-config.ts';
import { headerValues } from '../header-values.ts';
import { extraKey, identityText } from '../identity-headers.ts';
import { withAuthenticated, type UserInfo } from '../user.ts';

/** id-kp-clientAuth, RFC 5280 section 4.2.1.12. */
const clientAuth = '1.3.6.1.5.5.7.3.2';
const longestChain = 5;

const isCurrent = (certificate: X509Certificate, now: number): boolean =>
  certificate.validFromDate.getTime() <= now && now <= certificate.validToDate.getTime();

/** RFC 5280 section 6.1 for the short chains that are met here: signatures, dates, CA flags and the leaf's purpose. */
export function verifiesForClient(
  leaf: X509Certificate,
  authorities: readonly X509Certificate[],
  now: number,
): boolean {
  if (leaf.ca || !leaf.keyUsage?.includes(clientAuth)) return false;
  let certificate = leaf;
  for (let depth = 0; depth < longestChain; depth += 1) {
    if (!isCurrent(certificate, now)) return false;
    const child = certificate;
    const root = authorities.find((ca) => isCurrent(ca, now) && child.checkIssued(ca) && child.verify(ca.publicKey));
    if (root !== undefined) return true;
    const issuer = child.issuerCertificate;
    if (issuer === undefined || !issuer.ca || !child.checkIssued(issuer) || !child.verify(issuer.publicKey))
      return false;
    certificate = issuer;
  }
  return false;
}

/** The CN of a subject as X509Certificate prints it: a line a part. */
const commonName = (certificate: X509Certificate): string => /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? '';

interface Judged {
  readonly config: RequestHeaderConfig;
  readonly believed: boolean;
}

export function requestHeader(
  config: () => RequestHeaderConfig | undefined,
  clock: () => number = Date.now,
): (request: Request) => UserInfo | undefined {
  /** A connection's certificate cannot change, so it is judged once for each configuration. */
  const judged = new WeakMap<object, Judged>();

  function believes(request: Request, current: RequestHeaderConfig): boolean {
    const connection = connectionOf(request);
    const before = judged.get(connection);
    if (before?.config === current) return before.believed;
    const leaf = (request.socket as TLSSocket).getPeerX509Certificate?.();
    const believed =
      leaf !== undefined &&
      verifiesForClient(leaf, current.authorities, clock()) &&
      (current.allowedNames.length === 0 || current.allowedNames.includes(commonName(leaf)));
    judged.set(connection, { config: current, believed });
    return believed;
  }

  return (request) => {
    const current = config();
    if (current === undefined || !believes(request, current)) return undefined;
    const headers = headerValues(request);
    const texts = (name: string): readonly string[] =>
      (headers.get(name) ?? []).map((value) => identityText(name, value));
    const first = (names: readonly string[]): string | undefined =>
      names.map((name) => texts(name)[0] ?? '').find((value) => value !== '');
    const username = first(current.usernameHeaders);
    if (username === undefined) return undefined;
    const uid = first(current.uidHeaders);
    const extra = new Map<string, string[]>();
    for (const prefix of current.extraHeaderPrefixes)
      for (const name of headers.keys()) {
        if (!name.startsWith(prefix)) continue;
        const key = extraKey(name, name.slice(prefix.length));
        extra.set(key, [...(extra.get(key) ?? []), ...texts(name)]);
      }
    return withAuthenticated({
      username,
      ...(uid === undefined ? {} : { uid }),
      groups: current.groupHeaders.flatMap(texts).filter((group) => group !== ''),
      ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
      via: 'request-header',
    });
  };
}

/** What lives as long as the TLS connection: the HTTP/2 session or the socket. */
const connectionOf = (request: Request): object =>
  (request as Request & Partial<Pick<Http2ServerRequest, 'stream'>>).stream?.session ?? request.socket;
