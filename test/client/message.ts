import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { checkContent, streams } from './content.ts';
import { FramingError, type Head } from './response-reader.ts';

/** Content of a request over any version of HTTP. */
export interface Request {
  /** With its query. */
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | number | readonly string[] | undefined>>;
  readonly body?: string | Buffer | undefined;
}

interface Source {
  readonly resume: () => void;
  /** Leaves the rest unread. */
  readonly cancel: () => void;
}

/** A response whose body is still to be read. It ends only when its framing was right up to its end. */
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
    // A fault can come before anybody reads, who then gets it.
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
  /** As it was sent. */
  readonly body: Buffer;
  /** Without content coding. */
  readonly content: Buffer;
}

/** A server that announced more than it sends is silent for ever. In milliseconds. */
const maxSilence = 20_000;

/** Throws FramingError if the content is not what the headers say, or if the rest of it does not come. */
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
