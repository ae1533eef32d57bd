/**
 * Writes all error responses: OAuth's JSON below /oauth and /.well-known, metav1.Status in JSON or YAML everywhere
 * else.
 */
import type { Response } from 'express';
import { ServerResponse } from 'node:http';
import { describable, internalError, OAuthError, serviceUnavailable, StatusError } from '../../runtime/errors.ts';
import { KubeError } from '../../cluster/client/kube-error.ts';
import type { Exchange } from '../exchange.ts';
import type { oauthErrorSchema, statusSchema } from '../meta-schemas.ts';
import type { TypeOf } from '../schema.ts';
import { prefersYAML } from '../request/negotiate.ts';
import { cutOff } from './cut-off.ts';
import { yamlOf } from './yaml.ts';

export const usesOAuthErrors = (path: string): boolean =>
  path.startsWith('/oauth/') || path.startsWith('/.well-known/');

function typed(error: unknown, exchange: Exchange): StatusError | OAuthError {
  if (error instanceof StatusError || error instanceof OAuthError) return error;
  if (error instanceof KubeError) return error.toOwnStatusError();
  return internalError(exchange.auditID, error);
}

/** Returns the closest of the few error codes of RFC 6749 section 5.2, with the HTTP status of the error. */
function asOAuth(error: StatusError): OAuthError {
  const code =
    error.code >= 500
      ? error.code === 500
        ? 'server_error'
        : 'temporarily_unavailable'
      : error.code === 429
        ? 'temporarily_unavailable'
        : error.code === 403
          ? 'access_denied'
          : 'invalid_request';
  return new OAuthError(code, error.message, { status: error.code, headers: error.headers, cause: error.cause });
}

/** Returns the error of a request that this server aborted because its session was revoked or the server drains. */
export const requestEnded = (): StatusError => serviceUnavailable('the server aborted the request; try again', 1);

export function writeError(exchange: Exchange, thrown: unknown): void {
  const { res, log, auditID } = exchange;
  const wasAborted = exchange.isOver && thrown instanceof Error && thrown.name === 'AbortError';
  // The client has disconnected.
  if (wasAborted && exchange.hasEnded) return;
  const error = wasAborted ? requestEnded() : typed(thrown, exchange);
  if (error.code >= 500 && error.cause !== undefined) log.error(error.message, { auditID, error: error.cause });
  // The client has a complete response, such as the 504 of the deadline.
  if (res.writableEnded) return;
  const response = error instanceof StatusError && usesOAuthErrors(exchange.path) ? asOAuth(error) : error;
  const reason = response instanceof OAuthError ? response.error : response.reason;
  exchange.failure = { status: 'Failure', reason, message: error.message };
  // The headers are sent, so cutting is the only way to show the client that the response is incomplete.
  if (res.headersSent) return cutOff(res);
  try {
    writeResponse(exchange, response);
  } catch {
    resetHeaders(res);
    writeOrCut(exchange, response);
  }
  exchange.responseWritten();
}

/** Removes the headers that were set before the error, because one of them may be a header that Node cannot write. */
function resetHeaders(res: Response): void {
  for (const name of res.getHeaderNames()) if (name !== 'audit-id') res.removeHeader(name);
  if (res instanceof ServerResponse) res.statusMessage = '';
}

function writeOrCut(exchange: Exchange, error: StatusError | OAuthError): void {
  try {
    writeResponse(exchange, error);
  } catch (cause) {
    exchange.log.error('error response write failed', { auditID: exchange.auditID, error: cause });
    cutOff(exchange.res);
  }
}

function writeResponse({ req, res }: Exchange, error: StatusError | OAuthError): void {
  const json =
    error instanceof OAuthError
      ? JSON.stringify({
          error: error.error,
          error_description: describable(error.message),
        } satisfies TypeOf<typeof oauthErrorSchema>)
      : JSON.stringify(error.toStatus() satisfies TypeOf<typeof statusSchema>);
  const isYAML = error instanceof StatusError && prefersYAML(req.headers.accept);
  const bytes = isYAML ? yamlOf(Buffer.from(json)) : Buffer.from(`${json}\n`);
  for (const name of ['Content-Encoding', 'ETag', 'Content-Disposition']) res.removeHeader(name);
  res.setHeader('Content-Type', isYAML ? 'application/yaml' : 'application/json');
  res.setHeader('Cache-Control', error instanceof OAuthError ? 'no-store' : 'no-cache, private');
  if (error instanceof OAuthError) res.setHeader('Pragma', 'no-cache');
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  // The body of a slow request may never arrive, so the connection is closed.
  const isLate = error.code === 408 || error.code === 504;
  if (isLate && req.httpVersionMajor < 2) res.setHeader('Connection', 'close');
  res.setHeader('Content-Length', bytes.length);
  // The headers are written here and not by `end`: if `end` failed to write them, the connection would stay open.
  res.writeHead(error.code);
  res.end(req.method === 'HEAD' ? undefined : bytes);
}
