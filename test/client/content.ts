/** Checks that the body of a response matches its headers. The reader of each protocol checks the framing. */
import type { IncomingHttpHeaders } from 'node:http';
import { gunzipSync, type Gunzip } from 'node:zlib';
import { FramingError } from './response-reader.ts';

export interface Exchange {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Returns the body without its content coding. Throws FramingError. */
export function checkContent({ method, path, status, headers, body }: Exchange): Buffer {
  if (method === 'HEAD' || status === 204 || status === 304) {
    if (body.length > 0) throw new FramingError(`${method} ${path}: ${status} has a body of ${body.length} bytes`);
    return body;
  }
  const content = headers['content-encoding'] === 'gzip' ? gunzipped(body, path) : body;
  if (/^application\/([\w.-]+\+)?json\b/.test(headers['content-type'] ?? '')) checkJSON(content, path);
  return content;
}

function gunzipped(body: Buffer, path: string): Buffer {
  try {
    const { buffer, engine } = gunzipSync(body, { info: true }) as unknown as { buffer: Buffer; engine: Gunzip };
    if (engine.bytesWritten === body.length) return buffer;
    throw new Error(`${body.length - engine.bytesWritten} bytes follow the gzip member`);
  } catch (cause) {
    throw new FramingError(`${path}: the body is not gzip: ${String(cause)}`, { cause });
  }
}

/** Matches paths of long-running responses, which may send no data for a long time. */
export const streams = /[?&](watch|follow)=|\/watch\//;

/** Checks a JSON document, or the JSON document in each line of a stream. */
function checkJSON(content: Buffer, path: string): void {
  const text = content.toString('utf8');
  const problem = problemOf(text);
  if (problem === '' || (streams.test(path) && text.split('\n').every((line) => line === '' || problemOf(line) === '')))
    return;
  throw new FramingError(`${path}: the body is not JSON: ${problem}; it ends with ${JSON.stringify(text.slice(-80))}`);
}

function problemOf(text: string): string {
  try {
    JSON.parse(text);
    return '';
  } catch (error) {
    return String(error);
  }
}
