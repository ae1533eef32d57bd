/** Bodies of requests and responses as audit events show them. */
import { gunzipSync } from 'node:zlib';
import { redactedJSON } from '../runtime/redaction.ts';
import { isSensitive } from './body-level.ts';

/**
 * Maximum bytes of a body that is shown. Parsing and redacting more would block the event loop for longer than 10 ms.
 */
export const maxShown = 64 * 1024;
/** Maximum bytes of a response that is searched for the name of the created object. */
export const maxNaming = 512 * 1024;
/** Maximum bytes of all bodies that are in memory. */
const maxTotal = 64 * 1024 * 1024;

/** The headers Content-Type and Content-Encoding of a body. */
export interface BodyHeaders {
  readonly type: string;
  readonly encoding: string;
}

/** An object as JSON, or the reason why it is not shown; neither if there is no body. */
export interface ShownBody {
  readonly text?: string;
  readonly reason?: string;
}

/** Memory that all bodies share. */
export class BodyBudget {
  #held = 0;

  /** Reserves memory. Returns false if there is not enough memory. */
  reserve(bytes: number): boolean {
    if (this.#held + bytes > maxTotal) return false;
    this.#held += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }
}

/** Collects a body while it is transferred. */
export class AuditBody {
  readonly #budget: BodyBudget;
  readonly #maxSize: number;
  #bytes = Buffer.alloc(0);
  #length = 0;
  #problem: string | undefined;

  constructor(budget: BodyBudget, maxSize: number = maxShown) {
    this.#budget = budget;
    this.#maxSize = maxSize;
  }

  /** Discards the body and frees its memory. `problem` is the reason, if the event should state one. */
  discard(problem = ''): void {
    this.#problem = problem;
    this.#budget.release(this.#bytes.length);
    this.#bytes = Buffer.alloc(0);
  }

  add(chunk: Uint8Array): void {
    if (this.#problem !== undefined) return;
    const length = this.#length + chunk.length;
    if (length > this.#maxSize) return this.discard(tooLarge);
    if (length > this.#bytes.length && !this.#grow(length)) return this.discard('too many bodies in memory');
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
  }

  /**
   * At least doubles the buffer, so that growing copies each byte about once on average. Returns false if there is not
   * enough memory.
   */
  #grow(minSize: number): boolean {
    const size = Math.min(this.#maxSize, Math.max(minSize, this.#bytes.length * 2, 4096));
    if (!this.#budget.reserve(size - this.#bytes.length)) return false;
    const bytes = Buffer.alloc(size);
    bytes.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = bytes;
    return true;
  }

  /** Returns the decoded body. Throws if the body cannot be decoded. */
  bytes({ encoding }: BodyHeaders): Buffer {
    const bytes = this.#bytes.subarray(0, this.#length);
    return encoding === 'gzip' ? gunzipSync(bytes, { maxOutputLength: this.#maxSize }) : bytes;
  }

  get isTooLarge(): boolean {
    return this.#problem === tooLarge;
  }

  show(headers: BodyHeaders, omitManagedFields: boolean): ShownBody {
    if (this.#problem !== undefined) return this.#problem === '' ? {} : { reason: this.#problem };
    if (this.#length === 0) return {};
    // kube-apiserver treats a body without a type as JSON.
    const type = headers.type === '' ? 'application/json' : headers.type.toLowerCase();
    if (!/^application\/([\w.-]+\+)?json\b/.test(type))
      return { reason: `content type is ${type.slice(0, 100)}, not JSON` };
    try {
      const bytes = this.bytes(headers);
      if (bytes.length > maxShown) this.discard(tooLarge);
      if (this.#problem !== undefined) return { reason: this.#problem };
      const object = JSON.parse(bytes.toString('utf8')) as unknown;
      if (isSensitive(object)) return { reason: 'contains data that is never logged' };
      // This statement is inside `try`, because redaction throws for objects that are nested too deeply.
      return { text: redactedJSON(omitManagedFields ? withoutManagedFields(object) : object) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') this.discard(tooLarge);
      return { reason: this.#problem ?? 'cannot be decoded' };
    }
  }
}

const tooLarge = `larger than ${maxShown} bytes`;

interface KubeObject {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly items?: readonly unknown[];
}

function withoutManagedFields(object: unknown): unknown {
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return object;
  const { metadata, items } = object as KubeObject;
  const { managedFields: _, ...rest } = metadata ?? {};
  return {
    ...object,
    ...(metadata === undefined ? {} : { metadata: rest }),
    ...(Array.isArray(items) ? { items: items.map(withoutManagedFields) } : {}),
  };
}
