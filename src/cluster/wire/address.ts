/** Where kube-apiserver is, and how it is known. */
import { createSecureContext, type ConnectionOptions } from 'node:tls';
import type { TLSOptions } from '../client/access.ts';

export interface Address {
  readonly url: URL;
  /** Without the brackets of an IPv6 address. */
  readonly hostname: string;
  /** What stands before every path: '' or, behind some proxies, a path. */
  readonly prefix: string;
  readonly tls: ConnectionOptions;
}

/** `server`: a URL without a slash at the end. */
export function addressOf(server: string, { ca, cert, key, ...checks }: TLSOptions): Address {
  const url = new URL(server);
  return {
    url,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    prefix: url.pathname === '/' ? '' : url.pathname,
    // Made once: each connection would have one of its own, of 30 KB.
    tls: { ...checks, secureContext: createSecureContext({ ca, cert, key }) },
  };
}
