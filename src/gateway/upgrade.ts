/**
 * exec, attach, port-forward and whatever else leaves HTTP behind: once kube-apiserver has granted it, bytes go to and fro. Before that, or
 * if it does not, nothing of either connection is ever used again (CVE-2018-1002105).
 */
import type { Request, Response } from 'express';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { RequestContext } from '../http/route.ts';
import { cutIfUnread } from '../http/response/cut-off.ts';
import type { UpgradedConnection, Upstream } from '../cluster/client/upstream.ts';
import { callerOf, begin, refusalOfOurs, passageEnded } from './proxy.ts';
import { headersDown, headersUp } from './headers.ts';

/** For the rest of what one side has said after the other is gone, in milliseconds. */
const linger = 2_000;

export async function upgrade(upstream: Upstream, req: Request, res: Response, context: RequestContext): Promise<void> {
  const protocol = req.headers.upgrade ?? '';
  const asked = {
    method: req.method,
    target: req.url,
    headers: headersUp(req.rawHeaders, context),
    user: callerOf(context),
    isLongRunning: true,
  };
  const over = endOf(req, context);
  const { answer, granted } = await whileThere(res.socket as Socket, upstream.upgrade(asked, protocol, over));
  // Which the answer forgets at its end.
  const { socket } = answer;
  try {
    over.throwIfAborted();
    if (granted === undefined) await handBack(answer, upstream, res, context, over);
    else {
      const headers = headersDown(answer.rawHeaders);
      headers.push('Connection', 'Upgrade', 'Upgrade', answer.headers.upgrade ?? protocol);
      begin(res, 101, answer.statusMessage, headers);
      res.flushHeaders();
      await join(res, granted, over);
    }
  } finally {
    socket.destroy();
  }
}

/** Of the client, of its session, or of what its user may do: kube-apiserver judges a stream as the one who began it. */
function endOf(req: Request, context: RequestContext): AbortSignal {
  const over = new AbortController();
  const end = (): void => over.abort(passageEnded(req));
  context.onUserChange(end);
  context.signal.addEventListener('abort', end);
  if (context.signal.aborted) end();
  return over.signal;
}

/** Who has said all before there is an answer is gone: nothing could be said over what is asked for. */
async function whileThere<T>(client: Socket, answer: Promise<T>): Promise<T> {
  const leave = (): void => void client.destroy();
  client.once('end', leave);
  try {
    return await answer;
  } finally {
    client.off('end', leave);
  }
}

/** The end of the answer is the end of both connections: ours to kube-apiserver has no other use, and the client's none after a refusal. */
async function handBack(
  answer: IncomingMessage,
  upstream: Upstream,
  res: Response,
  context: RequestContext,
  over: AbortSignal,
): Promise<void> {
  const { statusCode: status = 502, statusMessage, rawHeaders } = answer;
  const refusal = refusalOfOurs(upstream, status, context);
  if (refusal !== undefined) throw refusal;
  begin(res, status, statusMessage, [...headersDown(rawHeaders), 'Connection', 'close']);
  if (context.info.isLongRunning) res.flushHeaders();
  over.addEventListener('abort', () => {
    answer.destroy();
    cutIfUnread(res);
  });
  const mayEnd = (): boolean => over.aborted && context.info.verb === 'watch';
  await pipeline(chunksOf(answer, mayEnd), res).catch(() => res.destroy());
}

/** What breaks off is broken off, unless it may end at any time. */
async function* chunksOf(answer: IncomingMessage, mayEnd: () => boolean): AsyncGenerator<Buffer> {
  try {
    yield* answer as AsyncIterable<Buffer>;
  } catch (error) {
    if (!mayEnd()) throw error;
  }
}

/** Each side's end is told to the other; when one is gone, so is the other. Resolves when that of kube-apiserver is. */
async function join(res: Response, { connection, first }: UpgradedConnection, over: AbortSignal): Promise<void> {
  const closed = new Promise((resolve) => connection.once('close', resolve));
  if (first.length > 0) connection.unshift(first);
  const client = res.socket as Socket;
  const breakOff = (): void => {
    connection.destroy();
    client.destroy();
  };
  over.addEventListener('abort', breakOff);
  connection.on('error', breakOff);
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
