import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { checkContent, streams } from './content.ts';
import { FramingError, type Head } from './response-reader.ts';

/** A request over any version of HTTP. */
export interface Request {
  /** Path with query. */
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | number | readonly string[] | undefined>>;
  readonly body?: string | Buffer | undefined;
}

interface Source {
  readonly resume: () => void;
  /** Abandons the rest of the response. */
  readonly cancel: () => void;
}

/**
 * A response whose body is still to be read. The stream ends without an error only if the framing was valid to the end.
 */
export class Message extends Readable {
  readonly request: Request;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly #source: Source;

  constructor(request: Request, { status, headers }: Head, source: Source) {
    super();
    this.request = request;
    this.status = status;
    this.headers = headers;
    this.#source = source;
    // An error may occur before there is a reader. The reader then receives the error.
    this.on('error', () => undefined);
  }

  override _read(): void {
    this.#source.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#source.cancel();
    done(error);
  }
}

export interface Whole {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Body as sent. */
  readonly body: Buffer;
  /** Body after decoding of its content coding. */
  readonly content: Buffer;
}

/**
 * Milliseconds without data after which a response fails. A server that sends fewer bytes than it announced would
 * otherwise block the test.
 */
const maxSilence = 20_000;

/** Reads a response to its end. Throws FramingError if the body does not match the headers, or stops arriving. */
export async function whole(message: Message): Promise<Whole> {
  const { status, headers, request } = message;
  const chunks: Buffer[] = [];
  const silent = (): void => {
    const { length } = Buffer.concat(chunks);
    message.destroy(new FramingError(`${request.path}: nothing came after ${length} bytes for ${maxSilence} ms`));
  };
  const silence = streams.test(request.path) ? undefined : setTimeout(silent, maxSilence);
  try {
    for await (const chunk of message) {
      chunks.push(chunk as Buffer);
      silence?.refresh();
    }
  } finally {
    clearTimeout(silence);
  }
  const body = Buffer.concat(chunks);
  const content = checkContent({ method: 'GET', ...request, status, headers, body });
  return { status, headers, body, content };
}
