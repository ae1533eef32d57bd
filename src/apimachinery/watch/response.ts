/** Starts the response to a watch. */
import type { Request, Response } from 'express';
import type { StatusError } from '../../runtime/errors.ts';
import { framed, StreamedBody } from '../../http/response/streamed-body.ts';
import { closing, normalClosure } from '../../http/listeners/web-socket-frames.ts';
import { accept, isHandshake } from '../../http/listeners/web-socket.ts';
import { errorFrame, type Format } from './frames.ts';

export const eventStream = 'text/event-stream';

/** Returns the milliseconds after which the server ends a watch: as requested, or a random time of 30 to 60 minutes. */
export const watchDuration = (timeoutSeconds: number | undefined): number =>
  timeoutSeconds === undefined ? 1_800_000 * (1 + Math.random()) : timeoutSeconds * 1000;

export interface WatchResponse {
  readonly format: Format;
  readonly body: StreamedBody;
}

/**
 * Writes the headers of a watch, or accepts its WebSocket. The Accept header does not apply to a WebSocket, which
 * always carries messages.
 */
export function beginWatch(req: Request, res: Response, serverSentEvents = false): WatchResponse {
  if (isHandshake(res)) {
    accept(req, res);
    return { format: 'messages', body: new StreamedBody(res, closing(normalClosure)) };
  }
  const format = serverSentEvents ? 'server-sent events' : 'lines';
  res.statusCode = 200;
  res.setHeader('Content-Type', serverSentEvents ? eventStream : 'application/json');
  res.flushHeaders();
  return { format, body: new StreamedBody(res) };
}

/** Ends a watch with an ERROR event, as clients expect after status 200. */
export function refuse({ format, body }: WatchResponse, error: StatusError): void {
  body.write(framed(body.framing, errorFrame(format, error)));
  body.end();
}
