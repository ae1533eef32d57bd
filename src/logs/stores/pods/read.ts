/**
 * Reads the log of a container line by line from the core API (k8s.io/kubernetes pkg/registry/core/pod/rest LogREST).
 */
import type { KubeResponse } from '../../../cluster/client/client.ts';
import { readBody } from '../../../runtime/promises.ts';
import type { Caller } from '../log-store.ts';
import { normalizeTime } from '../../query/times.ts';
import type { ContainerLog } from './source.ts';

export interface ReadOptions {
  /** Whole seconds since the epoch, the resolution of the API. */
  readonly since?: number | undefined;
  readonly tailLines?: number | undefined;
  readonly limitBytes?: number | undefined;
  readonly follow?: boolean;
  readonly signal: AbortSignal;
}

/** Returns false to stop reading, or a promise to wait before the next line. */
export type Visit = (time: string, log: Buffer) => boolean | Promise<void>;

/**
 * `refused`: the caller lacks the right; `unreadable`: the node cannot return the log at the moment; `none`: there is
 * no log.
 */
export interface ReadResult {
  readonly lines: number;
  readonly bytes: number;
  readonly outcome: 'read' | 'stopped' | 'none' | 'refused' | 'unreadable';
}

const newline = 0x0a;
const space = 0x20;
/** Maximum bytes of a line; longer lines are cut. */
export const maxLineLength = 2 * 1024 * 1024;
const maxErrorBytes = 64 * 1024;
/** A read is aborted after this number of milliseconds without data. Tails have no such timeout. */
const readTimeout = 20_000;
/** Length of `2006-01-02T15:04:05.000000000Z`, the format of a kubelet whose time zone is UTC. */
const usualLength = 30;

function timeIn(line: Buffer, length: number): string | undefined {
  const text = line.toString('latin1', 0, length);
  const isUsual = length === usualLength && line[usualLength - 1] === 0x5a && line[19] === 0x2e;
  return isUsual ? text : normalizeTime(text);
}

/** Splits chunks into lines. Cuts long lines without buffering the rest. */
class Lines {
  #pieces: Buffer[] = [];
  #size = 0;

  *of(chunk: Buffer): Generator<Buffer> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      yield this.#complete(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#append(chunk.subarray(start));
  }

  /** Returns the last line, which has no line break. */
  rest(): Buffer {
    return this.#complete(Buffer.alloc(0));
  }

  #complete(last: Buffer): Buffer {
    if (this.#size === 0) return last;
    this.#append(last);
    const line = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#size = 0;
    return line;
  }

  #append(piece: Buffer): void {
    const part = piece.subarray(0, maxLineLength - this.#size);
    if (part.length === 0) return;
    this.#pieces.push(part);
    this.#size += part.length;
  }
}

async function requestLog(
  caller: Caller,
  source: ContainerLog,
  options: ReadOptions,
  signal: AbortSignal,
): Promise<KubeResponse> {
  const { namespace, pod, container, previous } = source;
  const { since, tailLines, limitBytes, follow } = options;
  return caller.stream(`/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/log`, {
    query: {
      container,
      timestamps: 'true',
      previous: previous ? 'true' : undefined,
      sinceTime: since === undefined ? undefined : new Date(since * 1_000).toISOString().replace('.000Z', 'Z'),
      tailLines,
      limitBytes,
      follow: follow === true ? 'true' : undefined,
    },
    // A log is plain text, but an error is JSON.
    headers: { accept: 'application/json, */*' },
    signal,
    lane: 'logs',
    timeout: readTimeout,
  });
}

/** Reads a log. Throws only the reason of the aborted signal and errors of `visit`. */
export async function readLog(
  caller: Caller,
  source: ContainerLog,
  options: ReadOptions,
  visit: Visit,
): Promise<ReadResult> {
  const silent = new AbortController();
  const signal = AbortSignal.any([options.signal, silent.signal]);
  const timer = setTimeout(() => silent.abort(), readTimeout);
  let [lines, bytes] = [0, 0];
  const result = (outcome: ReadResult['outcome']): ReadResult => ({ lines, bytes, outcome });
  let body: KubeResponse['body'] | undefined;
  /** Error of the visitor, which must not count as an unreadable log. */
  let fault: { readonly error: unknown } | undefined;
  try {
    const response = await requestLog(caller, source, options, signal);
    body = response.body;
    if (response.status !== 200) {
      await readBody(body, maxErrorBytes).catch(() => undefined);
      if (response.status === 403) return result('refused');
      // 204 means that the pod is not scheduled. 400 means that the container has not started, or has no previous
      // instance.
      return result([204, 400, 404].includes(response.status) ? 'none' : 'unreadable');
    }
    if (options.follow === true) clearTimeout(timer);
    let malformed = 0;
    const take = (line: Buffer): ReturnType<Visit> => {
      const at = line.indexOf(space);
      const length = at === -1 ? line.length : at;
      const time = length > 40 ? undefined : timeIn(line, length);
      if (time === undefined) {
        malformed += 1;
        return true;
      }
      lines += 1;
      try {
        return visit(time, line.subarray(length + 1));
      } catch (error) {
        fault = { error };
        throw error;
      }
    };
    const all = new Lines();
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (options.follow !== true) timer.refresh();
      for (const line of all.of(chunk)) {
        const next = take(line);
        if (next === false) return result('stopped');
        if (next !== true) await next;
      }
    }
    const rest = all.rest();
    // A log that reaches limitBytes is cut within a line.
    const isCut = options.limitBytes !== undefined && bytes >= options.limitBytes;
    if (rest.length > 0 && !isCut) await take(rest);
    // A node that no longer has the log file returns an error message instead of lines with timestamps.
    return result(lines === 0 && malformed > 0 ? 'unreadable' : 'read');
  } catch {
    options.signal.throwIfAborted();
    if (fault !== undefined) throw fault.error;
    return result('unreadable');
  } finally {
    clearTimeout(timer);
    body?.destroy();
  }
}
