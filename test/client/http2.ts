/**
 * An HTTP/2 client that checks each byte it receives. nghttp2 checks the frames, and this client checks the content.
 */
import { connect as connectSession, constants, type ClientHttp2Session } from 'node:http2';
import type { SecureClientSessionOptions } from 'node:http2';
import { Message, type Request } from './message.ts';
import { FramingError } from './response-reader.ts';

export const connectHTTP2 = (url: string, options: SecureClientSessionOptions): ClientHttp2Session => {
  const session = connectSession(url, options);
  // Each stream reports its own error.
  session.on('error', () => undefined);
  return session;
};

/** Resolves with the head of the response. */
export function openHTTP2(session: ClientHttp2Session, request: Request): Promise<Message> {
  const { path, method = 'GET', headers = {}, body } = request;
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path, ':method': method, ...headers });
    let message: Message | undefined;
    let received = 0;
    let announced: number | undefined;
    let hasEnded = false;
    const fail = (error: Error): void => {
      reject(error);
      message?.destroy(error);
    };
    stream.on('response', (fields) => {
      const { ':status': status = 0, ...rest } = fields;
      if (rest['content-length'] !== undefined) announced = Number(rest['content-length']);
      message = new Message(
        request,
        { status, headers: rest },
        { resume: () => stream.resume(), cancel: () => stream.close(hasEnded ? undefined : constants.NGHTTP2_CANCEL) },
      );
      resolve(message);
    });
    stream.on('data', (bytes: Buffer) => {
      received += bytes.length;
      if (message?.push(bytes) === false) stream.pause();
    });
    stream.once('end', () => {
      hasEnded = true;
    });
    stream.once('error', fail);
    stream.once('close', () => {
      const { rstCode } = stream;
      if (message === undefined || !hasEnded || rstCode !== constants.NGHTTP2_NO_ERROR)
        return fail(new FramingError(`${path}: the stream was closed with code ${rstCode} after ${received} bytes`));
      if (method !== 'HEAD' && message.status !== 304 && announced !== undefined && announced !== received)
        return fail(new FramingError(`${path}: ${received} bytes of ${announced}`));
      message.push(null);
    });
    stream.end(body);
  });
}
