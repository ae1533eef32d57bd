import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import type { KubeResponse } from '../../src/cluster/client/client.ts';
import type { SeenRequest } from './cluster.ts';

export interface LogLine {
  /** RFC 3339 time. */
  readonly time: string;
  readonly log: string | Buffer;
}

/** A container's log on its node. */
export interface FakeLog {
  readonly lines: LogLine[];
  /** Lines that the container wrote before its last restart. */
  readonly previous?: readonly LogLine[];
  /** Error that is returned instead of the log. */
  refusal?: { readonly code: number; readonly reason: string };
  /** True if the node does not respond. */
  hangs?: boolean;
}

const refusal = (code: number, reason: string): KubeResponse => ({
  status: code,
  headers: {},
  body: Readable.from([
    Buffer.from(
      JSON.stringify({
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        code,
        reason,
        message: 'https://10.9.8.7:10250 said no',
      }),
    ),
  ]),
});

const lineOf = ({ time, log }: LogLine): Buffer =>
  Buffer.concat([Buffer.from(`${time} `), Buffer.from(log), Buffer.from('\n')]);

/** Returns container logs as kube-apiserver does, with the options and the behaviour of the kubelet. */
export class FakePodLogs {
  /** Logs by `namespace/pod/container`. */
  readonly logs = new Map<string, FakeLog>();
  readonly seen: SeenRequest[] = [];
  /** Number of open requests. */
  open = 0;
  /** Highest number of open requests so far. */
  maxOpen = 0;
  readonly #followers = new Map<string, Set<PassThrough>>();

  put(key: string, ...lines: readonly LogLine[]): FakeLog {
    const log: FakeLog = { lines: [...lines] };
    this.logs.set(key, log);
    return log;
  }

  /** Appends a line, which followers receive immediately. */
  write(key: string, line: LogLine): void {
    this.logs.get(key)?.lines.push(line);
    for (const follower of this.#followers.get(key) ?? []) follower.write(lineOf(line));
  }

  /** Terminates the container, and ends the streams of the followers of its log. */
  end(key: string): void {
    for (const follower of this.#followers.get(key) ?? []) follower.end();
    this.#followers.delete(key);
  }

  /** Aborts the streams of the followers of a log. */
  breakOff(key: string): void {
    for (const follower of this.#followers.get(key) ?? []) follower.destroy(new Error('broken off'));
  }

  /** Returns the response to a request for a log; undefined for any other path. */
  respond(request: SeenRequest, signal: AbortSignal | undefined): Promise<KubeResponse> | undefined {
    const match = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/log$/.exec(request.path);
    if (match === null) return undefined;
    this.seen.push(request);
    return this.#respond(`${match[1]}/${match[2]}/${String(request.query['container'])}`, request, signal);
  }

  async #respond(key: string, { query }: SeenRequest, signal: AbortSignal | undefined): Promise<KubeResponse> {
    const log = this.logs.get(key);
    if (log === undefined) return refusal(404, 'NotFound');
    if (log.refusal !== undefined) return refusal(log.refusal.code, log.refusal.reason);
    if (log.hangs === true && signal !== undefined) {
      if (!signal.aborted) await once(signal, 'abort');
      throw signal.reason;
    }
    if (query['previous'] === 'true' && log.previous === undefined) return refusal(400, 'BadRequest');
    const body = this.#stream(query['follow'] === 'true' ? key : undefined, signal);
    const lines = query['previous'] === 'true' ? (log.previous ?? []) : log.lines;
    const tail = query['tailLines'];
    const last = typeof tail === 'number' ? lines.slice(Math.max(lines.length - tail, 0)) : lines;
    const since = typeof query['sinceTime'] === 'string' ? Date.parse(query['sinceTime']) : -Infinity;
    const bytes = Buffer.concat(last.filter(({ time }) => !(Date.parse(time) < since)).map(lineOf));
    const limit = query['limitBytes'];
    const shown = typeof limit === 'number' ? bytes.subarray(0, limit) : bytes;
    void this.#write(body, shown, query['follow'] !== 'true');
    return { status: 200, headers: {}, body };
  }

  #stream(followed: string | undefined, signal: AbortSignal | undefined): PassThrough {
    const body = new PassThrough({ highWaterMark: 64 * 1024 });
    this.open += 1;
    this.maxOpen = Math.max(this.maxOpen, this.open);
    body.on('error', () => undefined);
    signal?.addEventListener('abort', () => body.destroy(signal.reason as Error));
    const followers = followed === undefined ? undefined : (this.#followers.get(followed) ?? new Set());
    if (followed !== undefined && followers !== undefined) this.#followers.set(followed, followers.add(body));
    body.once('close', () => {
      this.open -= 1;
      followers?.delete(body);
    });
    return body;
  }

  /** Writes the text in pieces of arbitrary length, at the reader's pace. */
  async #write(body: PassThrough, bytes: Buffer, ends: boolean): Promise<void> {
    for (let start = 0; start < bytes.length && !body.destroyed; start += 50_000)
      await new Promise<void>((resolve) => {
        body.once('close', resolve);
        body.write(bytes.subarray(start, start + 50_000), () => {
          body.off('close', resolve);
          resolve();
        });
      });
    if (ends && !body.destroyed) body.end();
  }
}
