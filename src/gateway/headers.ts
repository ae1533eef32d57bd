/**
 * Headers that the gateway forwards in each direction. Header lists contain alternating names and values, as in
 * `rawHeaders`.
 */

/**
 * Hop-by-hop headers of RFC 9110 section 7.6.1 and their older forms. These headers apply to one connection and are
 * never forwarded.
 */
const hopByHop = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
];

const blockedUp = new Set([
  ...hopByHop,
  'host',
  // The forwarded request has its own framing.
  'content-length',
  // This server handles the expectation.
  'expect',
  // Credentials for this server must not reach another server.
  'authorization',
  'cookie',
  // This server replaces the values, because kube-apiserver writes them to its audit log.
  'audit-id',
  'x-forwarded-for',
  'x-real-ip',
]);
/** Identity headers: only this server sets them. */
const identity = /^(?:x-remote-|impersonate-)/;
/** Prefix of HTTP/2 pseudo-headers. */
const pseudo = ':';

const blockedDown = new Set([
  ...hopByHop,
  'set-cookie',
  // gateway.strictTransportSecurity alone determines the policy of this host.
  'strict-transport-security',
  // The header would make clients bypass this server.
  'alt-svc',
]);
/** CORS headers: only `corsAllowedOrigins` determines which origins are allowed to read responses. */
const cors = 'access-control-';

const protocols = 'sec-websocket-protocol';
const bearerProtocol = /^base64url\.bearer\.authorization\.k8s\.io\./;

/** Returns the header names that `Connection` lists (RFC 9110 section 7.6.1); undefined if there are none. */
function namedByConnection(headers: readonly string[]): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (let at = 0; at < headers.length; at += 2)
    if (headers[at]?.length === 10 && headers[at]?.toLowerCase() === 'connection')
      for (const name of listed(headers[at + 1] ?? '')) (named ??= new Set()).add(name.toLowerCase());
  return named;
}

const listed = (value: string): string[] => value.split(',').map((text) => text.trim());

export interface RequestOrigin {
  readonly auditID: string;
  readonly sourceIP: string;
}

/**
 * Returns the request headers for kube-apiserver: the caller's headers without connection and identity headers, and the
 * headers of this server.
 */
export function headersUp(raw: readonly string[], { auditID, sourceIP }: RequestOrigin): string[] {
  const named = namedByConnection(raw);
  const headers: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? '';
    let value = raw[at + 1] ?? '';
    const lower = name.toLowerCase();
    if (blockedUp.has(lower) || identity.test(lower) || lower.startsWith(pseudo) || named?.has(lower) === true)
      continue;
    if (lower === protocols) {
      value = listed(value)
        .filter((protocol) => !bearerProtocol.test(protocol))
        .join(', ');
      if (value === '') continue;
    }
    headers.push(name, value);
  }
  headers.push('Audit-Id', auditID, 'X-Forwarded-For', sourceIP);
  return headers;
}

/** Returns the response headers for the caller. */
export function headersDown(raw: readonly string[]): string[] {
  const named = namedByConnection(raw);
  const headers: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? '';
    const lower = name.toLowerCase();
    if (!blockedDown.has(lower) && !lower.startsWith(cors) && named?.has(lower) !== true)
      headers.push(name, raw[at + 1] ?? '');
  }
  return headers;
}
