/**
 * Protocol upgrades, such as exec, attach and port-forward. Bytes are forwarded in both directions only after
 * kube-apiserver has accepted the upgrade. After a refused upgrade, neither connection is used again
 * (CVE-2018-1002105).
 */
import type { Request, Response } from 'express';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { RequestContext } from '../http/route.ts';
import { cutIfUnread } from '../http/response/cut-off.ts';
import type { UpgradedConnection, Upstream } from '../cluster/client/upstream.ts';
import { callerOf, ownRefusal, requestAborted } from './proxy.ts';
import { writeHead } from './response-head.ts';
import { headersDown, headersUp } from './headers.ts';
import { startTimer } from './response-timer.ts';

/** Milliseconds for the client to read remaining data after kube-apiserver has ended its stream. */
const linger = 2_000;

export async function upgrade(upstream: Upstream, req: Request, res: Response, context: RequestContext): Promise<void> {
  const protocol = req.headers.upgrade ?? '';
  const request = {
    method: req.method,
    target: req.url,
    headers: headersUp(req.rawHeaders, context),
    user: callerOf(context),
    isLongRunning: true,
  };
  const over = endOf(req, context);
  const stopTimer = startTimer(context);
  const upgraded = upstream.upgrade(request, protocol, over);
  upgraded.then(
    () => stopTimer('ok'),
    () => stopTimer(over.aborted ? 'aborted' : 'error'),
  );
  const { response, granted } = await whileOpen(res.socket as Socket, upgraded);
  // Node removes the socket from the response when the response ends.
  const { socket } = response;
  try {
    over.throwIfAborted();
    if (granted === undefined) await returnRefusal(response, upstream, res, context, over);
    else {
      const headers = headersDown(response.rawHeaders);
      headers.push('Connection', 'Upgrade', 'Upgrade', response.headers.upgrade ?? protocol);
      writeHead(res, 101, response.statusMessage, headers);
      res.flushHeaders();
      await join(res, granted, over);
    }
  } finally {
    socket.destroy();
  }
}

/**
 * Returns a signal that is aborted when the client disconnects, the session is revoked or the user's rights change.
 * kube-apiserver itself authorizes a stream only at its start.
 */
function endOf(req: Request, context: RequestContext): AbortSignal {
  const over = new AbortController();
  const end = (): void => over.abort(requestAborted(req));
  context.onUserChange(end);
  context.signal.addEventListener('abort', end);
  if (context.signal.aborted) end();
  return over.signal;
}

/**
 * Closes the connection if the client ends its stream before the response, because that client could send nothing over
 * the upgraded connection.
 */
async function whileOpen<T>(client: Socket, response: Promise<T>): Promise<T> {
  const leave = (): void => void client.destroy();
  client.once('end', leave);
  try {
    return await response;
  } finally {
    client.off('end', leave);
  }
}

/**
 * Returns a response that does not upgrade. Both connections end with this response, because neither is safe to reuse
 * after a refused upgrade.
 */
async function returnRefusal(
  response: IncomingMessage,
  upstream: Upstream,
  res: Response,
  context: RequestContext,
  over: AbortSignal,
): Promise<void> {
  const { statusCode: status = 502, statusMessage, rawHeaders } = response;
  const refusal = ownRefusal(upstream, status, context);
  if (refusal !== undefined) throw refusal;
  writeHead(res, status, statusMessage, [...headersDown(rawHeaders), 'Connection', 'close']);
  if (context.info.isLongRunning) res.flushHeaders();
  over.addEventListener('abort', () => {
    response.destroy();
    cutIfUnread(res);
  });
  const mayEnd = (): boolean => over.aborted && context.info.verb === 'watch';
  await pipeline(chunksOf(response, mayEnd), res).catch(() => res.destroy());
}

/** Yields the body. Throws if the body ends prematurely, unless `mayEnd` returns true. */
async function* chunksOf(response: IncomingMessage, mayEnd: () => boolean): AsyncGenerator<Buffer> {
  try {
    yield* response as AsyncIterable<Buffer>;
  } catch (error) {
    if (!mayEnd()) throw error;
  }
}

/**
 * Forwards data, and the end of the data, in both directions. Closes both connections together. Resolves when
 * kube-apiserver's connection is closed.
 */
async function join(res: Response, { connection, first }: UpgradedConnection, over: AbortSignal): Promise<void> {
  const closed = new Promise((resolve) => connection.once('close', resolve));
  if (first.length > 0) connection.unshift(first);
  const client = res.socket as Socket;
  const destroyBoth = (): void => {
    connection.destroy();
    client.destroy();
  };
  over.addEventListener('abort', destroyBoth);
  connection.on('error', destroyBoth);
  client.pipe(connection);
  connection.pipe(client, { end: false });
  connection.once('end', () => {
    res.end();
    client.end();
  });
  connection.once('close', () => {
    if (connection.readableEnded) setTimeout(() => client.destroy(), linger).unref();
    else client.destroy();
  });
  client.once('close', () => connection.destroy());
  await closed;
}
