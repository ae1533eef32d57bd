/**
 * exec, attach, port-forward and whatever else leaves HTTP behind: once kube-apiserver has granted it, bytes go to and fro. Before that, or
 * if it does not, nothing of either connection is ever used again (CVE-2018-1002105).
 */
import type { Request, Response } from 'express';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { RequestContext } from '../http/route.ts';
import type { Granted, Upstream } from '../kube/upstream.ts';
import { callerOf } from './caller.ts';
import { headersDown, headersUp } from './headers.ts';
import { begin, refusalOfOurs } from './proxy.ts';

/** For the rest of what one side has said after the other is gone, in milliseconds. */
const linger = 2_000;

export async function upgrade(upstream: Upstream, req: Request, res: Response, context: RequestContext): Promise<void> {
  const protocol = req.headers.upgrade ?? '';
  const { answer, granted } = await upstream.upgrade(
    {
      method: req.method,
      target: req.url,
      headers: headersUp(req.rawHeaders, context),
      user: callerOf(context),
      isLongRunning: true,
    },
    protocol,
  );
  try {
    if (granted === undefined) await handBack(answer, upstream, res, context);
    else {
      if (context.signal.aborted) return;
      const headers = headersDown(answer.rawHeaders);
      headers.push('Connection', 'Upgrade', 'Upgrade', answer.headers.upgrade ?? protocol);
      begin(res, 101, answer.statusMessage, headers);
      res.flushHeaders();
      await join(res, granted, context);
    }
  } finally {
    answer.socket.destroy();
  }
}

/** The end of the answer is the end of both connections: ours to kube-apiserver has no other use, and the client's none after a refusal. */
async function handBack(
  answer: IncomingMessage,
  upstream: Upstream,
  res: Response,
  context: RequestContext,
): Promise<void> {
  const { statusCode: status = 502, statusMessage, rawHeaders } = answer;
  const refusal = refusalOfOurs(upstream, status, context);
  if (refusal !== undefined) throw refusal;
  begin(res, status, statusMessage, [...headersDown(rawHeaders), 'Connection', 'close']);
  await pipeline(answer, res).catch(() => res.destroy());
}

/** Each side's end is told to the other; when one is gone, so is the other. Resolves when that of kube-apiserver is. */
async function join(res: Response, { connection, first }: Granted, context: RequestContext): Promise<void> {
  const closed = new Promise((resolve) => connection.once('close', resolve));
  if (first.length > 0) connection.unshift(first);
  const client = res.socket as Socket;
  const breakOff = (): void => {
    connection.destroy();
    client.destroy();
  };
  context.onUserChange(breakOff);
  context.signal.addEventListener('abort', breakOff);
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
