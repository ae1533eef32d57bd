/**
 * exec, attach, port-forward and whatever else leaves HTTP behind: once kube-apiserver has granted it, bytes go to and fro. Before that, or
 * if it does not, nothing of either connection is ever used again (CVE-2018-1002105).
 */
import type { Request, Response } from 'express';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { RequestContext } from '../http/route.ts';
import type { Upstream } from '../kube/upstream.ts';
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
  const headers = headersDown(answer.rawHeaders);
  if (granted === undefined) {
    const { statusCode: status = 502, statusMessage } = answer;
    const refusal = refusalOfOurs(upstream, status, context);
    if (refusal !== undefined) {
      answer.socket.destroy();
      throw refusal;
    }
    // The end of the answer is the end of both connections: ours to kube-apiserver has no other use, and the client's none after a refusal.
    begin(res, status, statusMessage, [...headers, 'Connection', 'close']);
    await pipeline(answer, res).catch(() => res.destroy());
    answer.socket.destroy();
    return;
  }
  const { connection, first } = granted;
  if (context.signal.aborted) return void connection.destroy();
  headers.push('Connection', 'Upgrade', 'Upgrade', answer.headers.upgrade ?? protocol);
  begin(res, 101, answer.statusMessage, headers);
  res.flushHeaders();
  if (first.length > 0) connection.unshift(first);
  join(res, connection, context);
}

/** Each side's end is told to the other; when one is gone, so is the other. */
function join(res: Response, connection: Duplex, context: RequestContext): void {
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
}
