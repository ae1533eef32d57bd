import { runWithin, type ClientSpan, type SentRequest, type ServerSpan } from '../../src/runtime/tracing.ts';

/** A span of a request that records the requests to other servers, and how the spans of these requests end. */
export class FakeSpan implements ServerSpan {
  readonly traceID = '4bf92f3577b34da6a3ce929d0e0e4736';
  isOver = false;
  readonly started: SentRequest[] = [];
  readonly ended: (readonly [status: number | undefined, error?: unknown])[] = [];

  startClient(request: SentRequest): ClientSpan {
    this.started.push(request);
    return {
      headers: { traceparent: `00-${this.traceID}-00f067aa0ba902b7-01` },
      end: (...end) => void this.ended.push(end),
    };
  }

  end(): void {
    this.isOver = true;
  }
}

/** Calls a function within a span. */
export const within = <T>(span: FakeSpan, call: () => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => runWithin(span, () => call().then(resolve, reject), undefined));
