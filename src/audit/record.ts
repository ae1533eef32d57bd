import type { AuditLevel } from '../config/audit.ts';
import { AuditBody, largestNaming, largestShown, type BodyHeaders, type BodyRoom, type Shown } from './bodies.ts';
import { levelFor } from './body-level.ts';
import { beginEvent, endEvent, type Audited, type AuditedUser, type ResponseStatus, type Stage } from './event.ts';
import { nameIn } from './object-name.ts';
import type { Verdict } from './policy.ts';

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
  #requestBody: AuditBody | undefined;
  readonly #responseBody: AuditBody | undefined;
  /** The answer says what the new object is called. */
  readonly #names: boolean;
  #annotations: Record<string, string> | undefined;
  #requestHeaders = noHeaders;
  #responseHeaders = noHeaders;
  #user: AuditedUser | undefined;

  /** `received`: milliseconds since the epoch. `emit` gets each event as JSON. */
  constructor(request: Audited, verdict: Verdict, received: number, room: BodyRoom, emit: (event: string) => void) {
    this.#request = request;
    this.#verdict = verdict;
    this.#level = levelFor(verdict.level, request);
    this.#emit = emit;
    this.#received = received;
    const { verb, isResourceRequest, name, subresource } = request.info;
    this.#names = this.#level !== 'None' && isResourceRequest && verb === 'create' && name === '' && subresource === '';
    this.#responseBody =
      this.#names || this.#level === 'RequestResponse'
        ? new AuditBody(room, this.#names ? largestNaming : largestShown)
        : undefined;
  }

  /** Given up at once if nobody wants to see it. */
  showRequest(body: AuditBody): void {
    if (this.#level === 'Request' || this.#level === 'RequestResponse') this.#requestBody = body;
    else body.giveUp();
  }

  /** Undefined unless there is something to see in it. */
  get responseBody(): AuditBody | undefined {
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
    const status = failure === undefined ? { code } : { code, ...failure };
    const created = this.#names && this.#responseBody ? nameIn(this.#responseBody, this.#responseHeaders) : '';
    const request = this.#show('request', this.#requestBody, this.#requestHeaders);
    const response = this.#show('response', this.#responseBody, this.#responseHeaders);
    this.#responseBody?.giveUp();
    if (!isWhole) this.annotate('platform.io/aborted', 'true');
    const stage = 'ResponseComplete';
    this.#write({ stage, time, status, requestObject: request.text, responseObject: response.text }, created);
  }

  /** And says so where something is left out. */
  #show(which: 'request' | 'response', body: AuditBody | undefined, headers: BodyHeaders): Shown {
    const isMeant = this.#level === 'RequestResponse' || (this.#level === 'Request' && which === 'request');
    if (body === undefined || !isMeant) return {};
    const shown = body.show(headers, this.#verdict.omitManagedFields);
    if (shown.why !== undefined) this.annotate(`platform.io/${which}-not-shown`, shown.why);
    if (body.isTooLarge) this.annotate('audit.k8s.io/truncated', 'true');
    return shown;
  }

  #write(stage: Stage, created = ''): void {
    if (this.#level === 'None' || this.#verdict.omitStages.includes(stage.stage)) return;
    const user = this.#user ?? this.#request.user;
    const annotations = this.#annotations;
    const begin = beginEvent(this.#request, this.#level, user, this.#received, created);
    this.#emit(begin + endEvent({ ...stage, annotations }));
  }
}
