/** What passes each way, and what does not. Names and values stand by turns, as they came. */

/** RFC 9110 section 7.6.1, and what went by these names before: of one connection, never of the next. */
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

const notUp = new Set([
  ...hopByHop,
  'host',
  // The framing is made anew.
  'content-length',
  // Answered here.
  'expect',
  // What proves the caller to us is nobody else's.
  'authorization',
  'cookie',
  // Ours are added: kube-apiserver writes them into its audit log.
  'audit-id',
  'x-forwarded-for',
  'x-real-ip',
]);
/** Who somebody is or wants to be is ours to say. */
const identity = /^(?:x-remote-|impersonate-)/;
/** HTTP/2's own, which are no headers. */
const pseudo = ':';

const notDown = new Set([
  ...hopByHop,
  'set-cookie',
  // gateway.strictTransportSecurity alone determines the policy of this host.
  'strict-transport-security',
  // It would lead clients past us.
  'alt-svc',
]);
/** Whose scripts may read our answers is said by corsAllowedOrigins alone. */
const cors = 'access-control-';

const protocols = 'sec-websocket-protocol';
const bearerProtocol = /^base64url\.bearer\.authorization\.k8s\.io\./;

/** Headers that are named as those of one connection (RFC 9110 section 7.6.1); undefined for none. */
function namedByConnection(headers: readonly string[]): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (let at = 0; at < headers.length; at += 2)
    if (headers[at]?.length === 10 && headers[at]?.toLowerCase() === 'connection')
      for (const name of listed(headers[at + 1] ?? '')) (named ??= new Set()).add(name.toLowerCase());
  return named;
}

const listed = (value: string): string[] => value.split(',').map((text) => text.trim());

export interface Told {
  readonly auditID: string;
  readonly sourceIP: string;
}

/** Of a request, for kube-apiserver: those of the caller that are not about the connection or about who they are, and ours. */
export function headersUp(raw: readonly string[], { auditID, sourceIP }: Told): string[] {
  const named = namedByConnection(raw);
  const headers: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? '';
    let value = raw[at + 1] ?? '';
    const lower = name.toLowerCase();
    if (notUp.has(lower) || identity.test(lower) || lower.startsWith(pseudo) || named?.has(lower) === true) continue;
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

/** Of an answer, for the caller. */
export function headersDown(raw: readonly string[]): string[] {
  const named = namedByConnection(raw);
  const headers: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? '';
    const lower = name.toLowerCase();
    if (!notDown.has(lower) && !lower.startsWith(cors) && named?.has(lower) !== true)
      headers.push(name, raw[at + 1] ?? '');
  }
  return headers;
}
