/** The answer to a watch: what its head says, and how each of its frames is written. */
import type { Request, Response } from 'express';
import type { StatusError } from '../../runtime/errors.ts';
import { framed, StreamedBody } from '../../http/response/streamed-body.ts';
import { closing, normalClosure } from '../../http/listeners/web-socket-frames.ts';
import { accept, isHandshake } from '../../http/listeners/web-socket.ts';
import { errorFrame, type Format } from './frames.ts';

export const eventStream = 'text/event-stream';

/** Until the server ends a watch, in milliseconds: what is asked for, else a random time of 30 to 60 minutes. */
export const watchDuration = (timeoutSeconds: number | undefined): number =>
  timeoutSeconds === undefined ? 1_800_000 * (1 + Math.random()) : timeoutSeconds * 1000;

export interface WatchAnswer {
  readonly format: Format;
  readonly body: StreamedBody;
}

/** A WebSocket has messages, whatever media type its client would accept otherwise. */
export function beginWatch(req: Request, res: Response, serverSentEvents = false): WatchAnswer {
  if (isHandshake(res)) {
    accept(req, res);
    return { format: 'messages', body: new StreamedBody(res, closing(normalClosure)) };
  }
  const format = serverSentEvents ? 'server-sent events' : 'lines';
  res.statusCode = 200;
  res.setHeader('Content-Type', serverSentEvents ? eventStream : 'application/json');
  res.setHeader('Cache-Control', 'no-cache, private');
  res.flushHeaders();
  return { format, body: new StreamedBody(res) };
}

/** Ends a watch that cannot go on, the way that clients expect it: after 200 by one ERROR. */
export function refuse({ format, body }: WatchAnswer, error: StatusError): void {
  body.write(framed(body.framing, errorFrame(format, error)));
  body.end();
}
