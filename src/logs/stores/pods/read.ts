/** One log through the core API (k8s.io/kubernetes pkg/registry/core/pod/rest LogREST), line by line as it arrives. */
import type { KubeResponse } from '../../../cluster/client/client.ts';
import { readBody } from '../../../runtime/promises.ts';
import type { Caller } from '../log-store.ts';
import { normalized } from '../../query/times.ts';
import type { ContainerLog } from './source.ts';

export interface ReadOptions {
  /** Whole seconds since the epoch: as RFC 3339, which is all that the API takes. */
  readonly since?: number | undefined;
  readonly tailLines?: number | undefined;
  readonly limitBytes?: number | undefined;
  readonly follow?: boolean;
  readonly signal: AbortSignal;
}

/** Returns false to read no further, a promise to be waited for. */
export type Visit = (time: string, log: Buffer) => boolean | Promise<void>;

/** How it ended. `refused`: the caller may not; `unreadable`: its node cannot give it now; `none`: there is none, or no more. */
export interface Ended {
  readonly lines: number;
  readonly bytes: number;
  readonly as: 'read' | 'stopped' | 'none' | 'refused' | 'unreadable';
}

const newline = 0x0a;
const space = 0x20;
/** What is longer is shown cut. */
export const longestLine = 2 * 1024 * 1024;
const largestRefusal = 64 * 1024;
/** For the first byte, and between two, in milliseconds; not while following. */
const patience = 20_000;
/** `2006-01-02T15:04:05.000000000Z`, as kubelet writes it where its clock shows UTC. */
const usualLength = 30;

function timeIn(line: Buffer, length: number): string | undefined {
  const text = line.toString('latin1', 0, length);
  const isUsual = length === usualLength && line[usualLength - 1] === 0x5a && line[19] === 0x2e;
  return isUsual ? text : normalized(text);
}

/** Lines of chunks as they come: what is longer than may be is cut, not held. */
class Lines {
  #begun: Buffer[] = [];
  #size = 0;

  *of(chunk: Buffer): Generator<Buffer> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      yield this.#ended(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start));
  }

  /** What has no end. */
  rest(): Buffer {
    return this.#ended(Buffer.alloc(0));
  }

  #ended(last: Buffer): Buffer {
    if (this.#size === 0) return last;
    this.#hold(last);
    const line = Buffer.concat(this.#begun);
    this.#begun = [];
    this.#size = 0;
    return line;
  }

  #hold(piece: Buffer): void {
    const part = piece.subarray(0, longestLine - this.#size);
    if (part.length === 0) return;
    this.#begun.push(part);
    this.#size += part.length;
  }
}

async function ask(
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
    // The log is no JSON, a refusal is.
    headers: { accept: 'application/json, */*' },
    signal,
    lane: 'logs',
    timeout: patience,
  });
}

/** Throws the signal's reason when that is aborted, what `visit` throws, and nothing else. */
export async function readLog(
  caller: Caller,
  source: ContainerLog,
  options: ReadOptions,
  visit: Visit,
): Promise<Ended> {
  const silent = new AbortController();
  const signal = AbortSignal.any([options.signal, silent.signal]);
  const timer = setTimeout(() => silent.abort(), patience);
  let [lines, bytes] = [0, 0];
  const ended = (as: Ended['as']): Ended => ({ lines, bytes, as });
  let body: KubeResponse['body'] | undefined;
  /** What the visitor threw is not the log's fault. */
  let fault: { readonly error: unknown } | undefined;
  try {
    const response = await ask(caller, source, options, signal);
    body = response.body;
    if (response.status !== 200) {
      await readBody(body, largestRefusal).catch(() => undefined);
      if (response.status === 403) return ended('refused');
      // 204: its pod is bound to no node. 400: it has not begun, or has no predecessor.
      return ended([204, 400, 404].includes(response.status) ? 'none' : 'unreadable');
    }
    if (options.follow === true) clearTimeout(timer);
    let strays = 0;
    const take = (line: Buffer): ReturnType<Visit> => {
      const at = line.indexOf(space);
      const length = at === -1 ? line.length : at;
      const time = length > 40 ? undefined : timeIn(line, length);
      if (time === undefined) {
        strays += 1;
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
        const going = take(line);
        if (going === false) return ended('stopped');
        if (going !== true) await going;
      }
    }
    const rest = all.rest();
    // At the limit it is cut anywhere.
    const isCut = options.limitBytes !== undefined && bytes >= options.limitBytes;
    if (rest.length > 0 && !isCut) await take(rest);
    // A node that has lost the log says so in its place.
    return ended(lines === 0 && strays > 0 ? 'unreadable' : 'read');
  } catch {
    options.signal.throwIfAborted();
    if (fault !== undefined) throw fault.error;
    return ended('unreadable');
  } finally {
    clearTimeout(timer);
    body?.destroy();
  }
}
