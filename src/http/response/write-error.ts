/** The one place where an error becomes bytes: OAuth's JSON under /oauth and /.well-known, metav1.Status everywhere else. */
import type { Response } from 'express';
import { ServerResponse } from 'node:http';
import { describable, internalError, OAuthError, serviceUnavailable, StatusError } from '../../runtime/errors.ts';
import { KubeError } from '../../cluster/client/kube-error.ts';
import type { Exchange } from '../exchange.ts';
import type { oauthErrorSchema, statusSchema } from '../meta-schemas.ts';
import type { TypeOf } from '../schema.ts';
import { cutOff } from './cut-off.ts';

export const speaksOAuth = (path: string): boolean => path.startsWith('/oauth/') || path.startsWith('/.well-known/');

function typed(error: unknown, exchange: Exchange): StatusError | OAuthError {
  if (error instanceof StatusError || error instanceof OAuthError) return error;
  if (error instanceof KubeError) return error.toOwnStatusError();
  return internalError(exchange.auditID, error);
}

/** RFC 6749 section 5.2 has few codes: the nearest one, and the HTTP status that fits. */
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

/** The response to a request that was given up here, because its session ended or the server drains. */
export const requestEnded = (): StatusError => serviceUnavailable('this request was ended; try again', 1);

export function writeError(exchange: Exchange, thrown: unknown): void {
  const { res, log, auditID } = exchange;
  const wasAborted = exchange.isOver && thrown instanceof Error && thrown.name === 'AbortError';
  // The client has gone away.
  if (wasAborted && exchange.hasEnded) return;
  const error = wasAborted ? requestEnded() : typed(thrown, exchange);
  if (error.code >= 500 && error.cause !== undefined) log.error(error.message, { auditID, error: error.cause });
  exchange.failure =
    error instanceof OAuthError
      ? { status: 'Failure', reason: error.error, message: error.message }
      : { status: 'Failure', reason: error.reason, message: error.message };
  if (res.headersSent || res.writableEnded) {
    // A stream that is under way cannot say more: cutting it tells the client that it is not whole.
    if (!res.writableEnded) cutOff(res);
    return;
  }
  const told = error instanceof StatusError && speaksOAuth(exchange.path) ? asOAuth(error) : error;
  try {
    answer(exchange, told);
  } catch {
    forgetHead(res);
    answerOrCut(exchange, told);
  }
  exchange.answered();
}

/** What was prepared for another answer, of which something cannot be written. */
function forgetHead(res: Response): void {
  for (const name of res.getHeaderNames()) if (name !== 'audit-id') res.removeHeader(name);
  if (res instanceof ServerResponse) res.statusMessage = '';
}

function answerOrCut(exchange: Exchange, error: StatusError | OAuthError): void {
  try {
    answer(exchange, error);
  } catch (cause) {
    exchange.log.error('an error cannot be answered', { auditID: exchange.auditID, error: cause });
    cutOff(exchange.res);
  }
}

function answer({ req, res }: Exchange, error: StatusError | OAuthError): void {
  const body =
    error instanceof OAuthError
      ? JSON.stringify({
          error: error.error,
          error_description: describable(error.message),
        } satisfies TypeOf<typeof oauthErrorSchema>)
      : JSON.stringify(error.toStatus() satisfies TypeOf<typeof statusSchema>);
  for (const name of ['Content-Encoding', 'ETag', 'Content-Disposition']) res.removeHeader(name);
  res.setHeader('Content-Type', 'application/json');
  res.setHeader('Cache-Control', error instanceof OAuthError ? 'no-store' : 'no-cache, private');
  if (error instanceof OAuthError) res.setHeader('Pragma', 'no-cache');
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  // What was too slow may never end, and then its connection would not either.
  const isLate = error.code === 408 || error.code === 504;
  if (isLate && req.httpVersionMajor < 2) res.setHeader('Connection', 'close');
  const bytes = Buffer.from(`${body}\n`);
  res.setHeader('Content-Length', bytes.length);
  // By itself: where that fails the connection would wait for the rest of `end`.
  res.writeHead(error.code);
  res.end(req.method === 'HEAD' ? undefined : bytes);
}
