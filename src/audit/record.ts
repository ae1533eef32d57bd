import type { AuditLevel } from '../config/audit.ts';
import { Body, levelFor } from './bodies.ts';
import { beginEvent, endEvent, type Audited, type AuditedUser, type ResponseStatus, type Stage } from './event.ts';
import type { Verdict } from './policy.ts';

/** What a body says that it is. */
export interface BodyHeaders {
  readonly type: string;
  readonly encoding: string;
}

const noHeaders: BodyHeaders = { type: '', encoding: '' };

/** How a request was answered. */
export interface Answered {
  /** What went wrong, if anything did. */
  readonly failure: Failure | undefined;
  /** The answer came to its end. */
  readonly isWhole: boolean;
}

export type Failure = Omit<ResponseStatus, 'code'>;

/** Of one request, whose stages are written down as they come. */
export class AuditRecord {
  readonly #request: Audited;
  readonly #verdict: Verdict;
  readonly #level: AuditLevel;
  readonly #emit: (event: string) => void;
  /** Milliseconds since the epoch. */
  readonly #received: number;
  #requestBody: Body | undefined;
  readonly #responseBody: Body | undefined;
  #annotations: Record<string, string> | undefined;
  #requestHeaders = noHeaders;
  #responseHeaders = noHeaders;
  #user: AuditedUser | undefined;

  /** `received`: milliseconds since the epoch. `emit` gets each event as JSON. */
  constructor(request: Audited, verdict: Verdict, received: number, emit: (event: string) => void) {
    this.#request = request;
    this.#verdict = verdict;
    this.#level = levelFor(verdict.level, request);
    this.#emit = emit;
    this.#received = received;
    this.#responseBody = this.#level === 'RequestResponse' ? new Body() : undefined;
  }

  /** Given up at once if nobody wants to see it. */
  showRequest(body: Body): void {
    if (this.#level === 'Request' || this.#level === 'RequestResponse') this.#requestBody = body;
    else body.giveUp();
  }

  /** Undefined unless somebody wants to see it. */
  get responseBody(): Body | undefined {
    return this.#responseBody;
  }

  /** What the body of the request says that it is. */
  describeRequest(headers: BodyHeaders): void {
    this.#requestHeaders = headers;
  }

  describeResponse(headers: BodyHeaders): void {
    this.#responseHeaders = headers;
  }

  /** Who it turned out to be: somebody who logs in. */
  identify(user: AuditedUser): void {
    this.#user = user;
  }

  annotate(key: string, value: string): void {
    (this.#annotations ??= {})[key] = value;
  }

  received(time: number): void {
    this.#write({ stage: 'RequestReceived', time });
  }

  started(time: number, code: number): void {
    this.#write({ stage: 'ResponseStarted', time, status: { code } });
  }

  complete(time: number, code: number, { failure, isWhole }: Answered): void {
    const { omitManagedFields } = this.#verdict;
    const requestObject = this.#requestBody?.object(this.#requestHeaders, omitManagedFields);
    const responseObject = this.#responseBody?.object(this.#responseHeaders, omitManagedFields);
    if (this.#requestBody?.isTooLarge === true || this.#responseBody?.isTooLarge === true)
      this.annotate('audit.k8s.io/truncated', 'true');
    if (!isWhole) this.annotate('platform.io/aborted', 'true');
    const status = failure === undefined ? { code } : { code, ...failure };
    this.#write({ stage: 'ResponseComplete', time, status, requestObject, responseObject });
  }

  #write(stage: Stage): void {
    if (this.#level === 'None' || this.#verdict.omitStages.includes(stage.stage)) return;
    const user = this.#user ?? this.#request.user;
    const annotations = this.#annotations;
    this.#emit(beginEvent(this.#request, this.#level, user, this.#received) + endEvent({ ...stage, annotations }));
  }
}
