/**
 * Authenticates requests through the aggregator by its front-proxy certificate and X-Remote-* headers. The headers are
 * trusted only if the certificate chain verifies against the request-header CA. `socket.authorized` is not used,
 * because it accepts other CAs.
 */
import type { Request } from 'express';
import type { X509Certificate } from 'node:crypto';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { RequestHeaderConfig } from './request-header-config.ts';
import { presentedChain, verifiedUntil, type PresentedChain } from './client-chain.ts';
import { headerValues, extraKey, identityText } from '../identity-headers.ts';
import { withAuthenticated, type UserInfo } from '../user.ts';

/** Milliseconds after which a refused certificate is verified again, because it may become valid. */
const refusedLife = 10_000;

interface Verification {
  readonly config: RequestHeaderConfig;
  readonly isTrusted: boolean;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export function requestHeader(
  config: () => RequestHeaderConfig | undefined,
  clock: () => number = Date.now,
): (request: Request) => UserInfo | undefined {
  const presented = new WeakMap<object, PresentedChain | undefined>();
  const verifications = new WeakMap<object, Verification>();

  function verify(connection: object, socket: TLSSocket, current: RequestHeaderConfig, now: number): Verification {
    if (!presented.has(connection)) presented.set(connection, presentedChain(socket));
    const chain = presented.get(connection);
    const isAllowed =
      chain !== undefined &&
      (current.allowedNames.length === 0 || current.allowedNames.includes(commonName(chain.leaf)));
    const until = isAllowed ? verifiedUntil(chain, current.authorities, now) : undefined;
    return { config: current, isTrusted: until !== undefined, until: until ?? now + refusedLife };
  }

  /**
   * Returns whether the client certificate of the connection is trusted by the rules of kube-apiserver. The result is
   * cached per connection until it expires or the configuration changes.
   */
  function isTrustedProxy(request: Request, current: RequestHeaderConfig): boolean {
    const connection = connectionOf(request);
    const now = clock();
    let verification = verifications.get(connection);
    if (verification?.config !== current || now > verification.until) {
      verification = verify(connection, request.socket as TLSSocket, current, now);
      verifications.set(connection, verification);
    }
    return verification.isTrusted;
  }

  return (request) => {
    const current = config();
    if (current === undefined || !isTrustedProxy(request, current)) return undefined;
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

/** Returns the last common name, like crypto/x509 of Go. */
function commonName(certificate: X509Certificate): string {
  const { CN: names } = certificate.toLegacyObject().subject as { readonly CN?: string | readonly string[] };
  return [names ?? []].flat().at(-1) ?? '';
}

/** Returns the object that lives as long as the TLS connection: the HTTP/2 session or the socket. */
const connectionOf = (request: Request): object =>
  (request as Request & Partial<Pick<Http2ServerRequest, 'stream'>>).stream?.session ?? request.socket;
