/**
 * Parses the headers of a WebSocket request (RFC 6455 section 4.1). Browsers cannot set the Authorization header, so
 * the bearer token may be one of the subprotocols (k8s.io/apiserver pkg/authentication/request/websocket/protocol.go).
 */
import type { IncomingMessage } from 'node:http';
import { malformedCredentials } from '../../runtime/errors.ts';
import { isBearerToken } from './bearer-credentials.ts';

type WebSocketRequest = Pick<IncomingMessage, 'method' | 'httpVersion' | 'headers'>;

const bearerPrefix = 'base64url.bearer.authorization.k8s.io.';
const base64url = /^[A-Za-z0-9_-]+$/;

const listed = (header: string | undefined): readonly string[] =>
  (header ?? '')
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '');

const names = (header: string | undefined, word: string): boolean =>
  header !== undefined && listed(header).some((text) => text.toLowerCase() === word);

export const isWebSocketRequest = ({ method, httpVersion, headers }: WebSocketRequest): boolean =>
  names(headers.upgrade, 'websocket') &&
  names(headers.connection, 'upgrade') &&
  method === 'GET' &&
  httpVersion === '1.1';

/**
 * Returns the first offered subprotocol that is not a token; undefined if there is none. The response must select an
 * offered subprotocol.
 */
export const subprotocolOf = ({ headers }: WebSocketRequest): string | undefined =>
  listed(headers['sec-websocket-protocol']).find((protocol) => !protocol.startsWith(bearerPrefix));

/**
 * Returns the token among the subprotocols, if any. Throws 401 for a malformed token, for several tokens, and for a
 * token without another subprotocol that the response could select.
 */
export function subprotocolToken(request: WebSocketRequest): string | undefined {
  if (!isWebSocketRequest(request)) return undefined;
  const [protocol, ...more] = listed(request.headers['sec-websocket-protocol']).filter((text) =>
    text.startsWith(bearerPrefix),
  );
  if (protocol === undefined) return undefined;
  const encoded = protocol.slice(bearerPrefix.length);
  const token = Buffer.from(encoded, 'base64url').toString('utf8');
  if (more.length > 0 || subprotocolOf(request) === undefined || !base64url.test(encoded) || !isBearerToken(token))
    throw malformedCredentials(
      `Sec-WebSocket-Protocol must have one token, as ${bearerPrefix}<token in base64url without padding>, and another subprotocol`,
    );
  return token;
}
