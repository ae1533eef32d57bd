/**
 * What a request for a WebSocket says beside the usual (RFC 6455 section 4.1), with the bearer token among its subprotocols: a browser
 * cannot send it in a header (k8s.io/apiserver pkg/authentication/request/websocket/protocol.go).
 */
import type { IncomingMessage } from 'node:http';
import { unauthorized } from '../../runtime/errors.ts';
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

/** The first one offered, never a token. Undefined if there is none: a client that offers some wants to hear one of them. */
export const subprotocolOf = ({ headers }: WebSocketRequest): string | undefined =>
  listed(headers['sec-websocket-protocol']).find((protocol) => !protocol.startsWith(bearerPrefix));

/**
 * Undefined if there is none. Throws 401 for one that cannot be read, for several, and for one without another subprotocol beside it,
 * which the answer could name.
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
    throw unauthorized({ error: 'invalid_token' });
  return token;
}
