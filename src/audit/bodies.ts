/** What an event may show of the bodies of a request and its answer. */
import { gunzipSync } from 'node:zlib';
import { redactedJSON } from '../runtime/redaction.ts';
import { isSecretive } from './body-level.ts';

/** Maximum bytes of a body that is shown. Parsing and redacting more would block the event loop for longer than 10 ms. */
export const largestShown = 64 * 1024;
/** Maximum bytes of a response that names the created object. */
export const largestNaming = 512 * 1024;
/** Bytes of all that are held at a time. */
const mostHeld = 64 * 1024 * 1024;

/** What a body says that it is. */
export interface BodyHeaders {
  readonly type: string;
  readonly encoding: string;
}

/** An object as JSON, or why it is not shown; neither where there is none. */
export interface Shown {
  readonly text?: string;
  readonly why?: string;
}

/** The room that all bodies share. */
export class BodyRoom {
  #held = 0;

  /** False if there is none. */
  take(bytes: number): boolean {
    if (this.#held + bytes > mostHeld) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}

/** Collects a body while it passes. */
export class AuditBody {
  readonly #room: BodyRoom;
  readonly #most: number;
  #bytes = Buffer.alloc(0);
  #length = 0;
  #problem: string | undefined;

  constructor(room: BodyRoom, most: number = largestShown) {
    this.#room = room;
    this.#most = most;
  }

  /** Nobody wants to see it any more. */
  giveUp(problem = ''): void {
    this.#problem = problem;
    this.#room.give(this.#bytes.length);
    this.#bytes = Buffer.alloc(0);
  }

  add(chunk: Uint8Array): void {
    if (this.#problem !== undefined) return;
    const length = this.#length + chunk.length;
    if (length > this.#most) return this.giveUp(tooLarge);
    if (length > this.#bytes.length && !this.#grow(length)) return this.giveUp('too many bodies are under way');
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
  }

  /** Twice as large at least: however small the pieces are, they are copied once more at most. */
  #grow(least: number): boolean {
    const size = Math.min(this.#most, Math.max(least, this.#bytes.length * 2, 4096));
    if (!this.#room.take(size - this.#bytes.length)) return false;
    const bytes = Buffer.alloc(size);
    bytes.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = bytes;
    return true;
  }

  /** What came, decoded; throws if it cannot be. */
  bytes({ encoding }: BodyHeaders): Buffer {
    const bytes = this.#bytes.subarray(0, this.#length);
    return encoding === 'gzip' ? gunzipSync(bytes, { maxOutputLength: this.#most }) : bytes;
  }

  get isTooLarge(): boolean {
    return this.#problem === tooLarge;
  }

  show(headers: BodyHeaders, omitManagedFields: boolean): Shown {
    if (this.#problem !== undefined) return this.#problem === '' ? {} : { why: this.#problem };
    if (this.#length === 0) return {};
    // What does not say what it is kube-apiserver takes for JSON.
    const type = headers.type === '' ? 'application/json' : headers.type.toLowerCase();
    if (!/^application\/([\w.-]+\+)?json\b/.test(type)) return { why: `it is ${type.slice(0, 100)}, not JSON` };
    try {
      const bytes = this.bytes(headers);
      if (bytes.length > largestShown) this.giveUp(tooLarge);
      if (this.#problem !== undefined) return { why: this.#problem };
      const object = JSON.parse(bytes.toString('utf8')) as unknown;
      if (isSecretive(object)) return { why: 'it holds what is never shown' };
      // Here, because what is nested too deep for it is no reason to fail.
      return { text: redactedJSON(omitManagedFields ? withoutManagedFields(object) : object) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') this.giveUp(tooLarge);
      return { why: this.#problem ?? 'it cannot be read' };
    }
  }
}

const tooLarge = `it has more than ${largestShown} bytes`;

interface Described {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly items?: readonly unknown[];
}

function withoutManagedFields(object: unknown): unknown {
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return object;
  const { metadata, items } = object as Described;
  const { managedFields: _, ...rest } = metadata ?? {};
  return {
    ...object,
    ...(metadata === undefined ? {} : { metadata: rest }),
    ...(Array.isArray(items) ? { items: items.map(withoutManagedFields) } : {}),
  };
}
