/** Names and attributes of spans, by the semantic conventions of OpenTelemetry for HTTP. */
import type { Attributes } from '@opentelemetry/api';
import {
  ATTR_CLIENT_ADDRESS,
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_NETWORK_PROTOCOL_NAME,
  ATTR_NETWORK_PROTOCOL_VERSION,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_FULL,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
  ATTR_USER_AGENT_ORIGINAL,
} from '@opentelemetry/semantic-conventions';
import { redactText } from '../runtime/redaction.ts';
import type { SentRequest, ServedRequest } from '../runtime/tracing.ts';

/** Maximum characters of an attribute, because callers choose their paths and user agents. */
const maxAttribute = 1_024;

/** Error of a request whose client disconnected. */
export const aborted = { code: 'aborted' };

/** Returns the code or the class of an error. Messages are not recorded, because they may quote secrets. */
export function errorType(status: string | undefined, error: unknown): string | undefined {
  if (error === undefined) return status;
  const { code, name } = error as { readonly code?: unknown; readonly name?: string };
  return typeof code === 'string' ? code : (name ?? '_OTHER');
}

/**
 * Returns a copy of at most `maxAttribute` characters. A substring would keep the whole text in memory while the span
 * waits.
 */
const shortened = (text: string): string =>
  text.length <= maxAttribute ? text : Buffer.from(text.slice(0, maxAttribute)).toString();

/** Methods that a span names (http.request.method). */
const methods: ReadonlySet<string> = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '));

/** Returns the name and attributes of a server span by the semantic conventions for HTTP spans. */
export function describeServed(request: ServedRequest) {
  const { route, status, userAgent } = request;
  const method = methods.has(request.method) ? request.method : undefined;
  const isFailure = status !== undefined && status >= 500;
  const attributes: Attributes = {
    [ATTR_HTTP_REQUEST_METHOD]: method ?? '_OTHER',
    [ATTR_URL_SCHEME]: request.scheme,
    [ATTR_URL_PATH]: shortened(request.path),
    [ATTR_NETWORK_PROTOCOL_VERSION]: request.version,
    [ATTR_CLIENT_ADDRESS]: request.sourceIP,
    // The spans of kube-apiserver have the same attribute.
    'audit-id': request.auditID,
    ...(route === undefined ? {} : { [ATTR_HTTP_ROUTE]: route }),
    ...(userAgent === '' ? {} : { [ATTR_USER_AGENT_ORIGINAL]: shortened(userAgent) }),
    ...(status === undefined ? { [ATTR_ERROR_TYPE]: aborted.code } : { [ATTR_HTTP_RESPONSE_STATUS_CODE]: status }),
    ...(isFailure ? { [ATTR_ERROR_TYPE]: String(status) } : {}),
  };
  return { name: [method ?? 'HTTP', ...(route === undefined ? [] : [route])].join(' '), attributes, isFailure };
}

const defaultPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

export function describeSent({ peer, operation, url, path }: SentRequest): { name: string; attributes: Attributes } {
  const { protocol, hostname: host } = url;
  const port = url.port === '' ? defaultPorts[protocol] : Number(url.port);
  const attributes = {
    'service.peer.name': peer,
    [ATTR_SERVER_ADDRESS]: host.replaceAll(/[[\]]/g, ''),
    ...(port === undefined ? {} : { [ATTR_SERVER_PORT]: port }),
    ...(path === undefined
      ? { [ATTR_NETWORK_PROTOCOL_NAME]: protocol.slice(0, -1) }
      : {
          [ATTR_HTTP_REQUEST_METHOD]: operation,
          [ATTR_URL_FULL]: shortened(redactText(`${url.origin}${path.split('?', 1)[0]}`)),
        }),
  };
  return { name: operation, attributes };
}
