/**
 * A receiver of OTLP/HTTP that fails as the current test specifies. test/integration/tracing.test.ts uses official
 * types instead.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { fields } from '../../src/runtime/protobuf.ts';

/** The parts of opentelemetry.proto.trace.v1.Span that tests read. */
export interface ReceivedSpan {
  readonly traceID: string;
  readonly spanID: string;
  readonly parentID: string;
  readonly name: string;
  /** Attribute values: strings, and integers as protobuf encodes them. */
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly { readonly traceID: string; readonly spanID: string }[];
}

const texts = (message: Buffer, number: number): string => fields(message, number)[0]?.toString('utf8') ?? '';
const hex = (message: Buffer, number: number): string => fields(message, number)[0]?.toString('hex') ?? '';

/** Reads an AnyValue: a string (field 1) or an integer (field 3). */
function valueOf(value: Buffer): string | number {
  if (value[0] !== 0x18) return texts(value, 1);
  return value.subarray(1).reduce((sum, byte, at) => sum + (byte & 127) * 128 ** at, 0);
}

function spansIn(body: Buffer): ReceivedSpan[] {
  const spans = fields(body, 1)
    .flatMap((resource) => fields(resource, 2))
    .flatMap((scope) => fields(scope, 2));
  return spans.map((span) => ({
    traceID: hex(span, 1),
    spanID: hex(span, 2),
    parentID: hex(span, 4),
    name: texts(span, 5),
    attributes: Object.fromEntries(
      fields(span, 9).map((pair) => [texts(pair, 1), valueOf(fields(pair, 2)[0] ?? Buffer.alloc(0))]),
    ),
    links: fields(span, 13).map((link) => ({ traceID: hex(link, 1), spanID: hex(link, 2) })),
  }));
}

export class TraceReceiver {
  readonly requests: { readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }[] = [];
  readonly spans: ReceivedSpan[] = [];
  serve: (res: ServerResponse) => void = (res) => void res.end();
  readonly #server = createServer((req, res) => void this.#receive(req, res));
  #waiting: (() => void)[] = [];

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves with all received spans, once `isComplete` returns true for these spans. */
  async until(isComplete: (spans: readonly ReceivedSpan[]) => boolean): Promise<readonly ReceivedSpan[]> {
    while (!isComplete(this.spans)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.spans;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await buffer(req);
    this.requests.push({ url: req.url ?? '', headers: req.headers, body });
    this.spans.push(...spansIn(body));
    this.serve(res);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
