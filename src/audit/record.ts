import type { AuditLevel } from '../config/audit.ts';
import { AuditBody, maxNaming, maxShown, type BodyHeaders, type BodyBudget, type ShownBody } from './bodies.ts';
import { effectiveLevel } from './body-level.ts';
import { beginEvent, endEvent, type Audited, type AuditedUser, type ResponseStatus, type Stage } from './event.ts';
import { objectNameIn } from './object-name.ts';
import type { AuditDecision } from './policy.ts';

const noHeaders: BodyHeaders = { type: '', encoding: '' };

/** How a request ended. */
export interface Outcome {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly status: number;
  /** The error, if any. */
  readonly failure: Failure | undefined;
  /** True if the response was sent completely. */
  readonly isWhole: boolean;
}

export type Failure = Omit<ResponseStatus, 'code'>;

/** Audit record of one request. The record writes an event for each stage. */
export class AuditRecord {
  readonly #request: Audited;
  readonly #decision: AuditDecision;
  readonly #level: AuditLevel;
  readonly #emit: (event: string) => void;
  /** Milliseconds since the epoch. */
  readonly #received: number;
  #requestBody: AuditBody | undefined;
  readonly #responseBody: AuditBody | undefined;
  /** True if the response contains the name of the created object. */
  readonly #isCreation: boolean;
  #annotations: Record<string, string> | undefined;
  #requestHeaders = noHeaders;
  #responseHeaders = noHeaders;
  #user: AuditedUser | undefined;

  /** `received`: milliseconds since the epoch. `emit` receives each event as JSON. */
  constructor(
    request: Audited,
    decision: AuditDecision,
    received: number,
    budget: BodyBudget,
    emit: (event: string) => void,
  ) {
    this.#request = request;
    this.#decision = decision;
    this.#level = effectiveLevel(decision.level, request);
    this.#emit = emit;
    this.#received = received;
    const { verb, isResourceRequest, name, subresource } = request.info;
    this.#isCreation =
      this.#level !== 'None' && isResourceRequest && verb === 'create' && name === '' && subresource === '';
    this.#responseBody =
      this.#isCreation || this.#level === 'RequestResponse'
        ? new AuditBody(budget, this.#isCreation ? maxNaming : maxShown)
        : undefined;
  }

  /** Sets the collector of the request body, or discards the body if the audit level excludes it. */
  showRequest(body: AuditBody): void {
    if (this.#level === 'Request' || this.#level === 'RequestResponse') this.#requestBody = body;
    else body.discard();
  }

  /** The collector of the response body; undefined if the body is not needed. */
  get responseBody(): AuditBody | undefined {
    return this.#responseBody;
  }

  /** True if the record holds the memory of a body. */
  get holdsBody(): boolean {
    return this.#requestBody !== undefined || this.#responseBody !== undefined;
  }

  /** Sets the headers that describe the request body. */
  describeRequest(headers: BodyHeaders): void {
    this.#requestHeaders = headers;
  }

  describeResponse(headers: BodyHeaders): void {
    this.#responseHeaders = headers;
  }

  /** Sets the user of a login, who is unknown when the request starts. */
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

  complete({ time, status: code, failure, isWhole }: Outcome): void {
    const status = failure === undefined ? { code } : { code, ...failure };
    const created =
      this.#isCreation && this.#responseBody ? objectNameIn(this.#responseBody, this.#responseHeaders) : '';
    const request = this.#show('request', this.#requestBody, this.#requestHeaders);
    const response = this.#show('response', this.#responseBody, this.#responseHeaders);
    this.#responseBody?.discard();
    if (!isWhole) this.annotate('platform.io/aborted', 'true');
    const stage = 'ResponseComplete';
    this.#write({ stage, time, status, requestObject: request.text, responseObject: response.text }, created);
  }

  /** Returns the body as the event shows it. Annotates the event if the body is left out. */
  #show(which: 'request' | 'response', body: AuditBody | undefined, headers: BodyHeaders): ShownBody {
    const isIncluded = this.#level === 'RequestResponse' || (this.#level === 'Request' && which === 'request');
    if (body === undefined || !isIncluded) return {};
    const shown = body.show(headers, this.#decision.omitManagedFields);
    if (shown.reason !== undefined) this.annotate(`platform.io/${which}-not-shown`, shown.reason);
    if (body.isTooLarge) this.annotate('audit.k8s.io/truncated', 'true');
    return shown;
  }

  #write(stage: Stage, created = ''): void {
    if (this.#level === 'None' || this.#decision.omitStages.includes(stage.stage)) return;
    const user = this.#user ?? this.#request.user;
    const annotations = this.#annotations;
    const begin = beginEvent(this.#request, this.#level, user, this.#received, created);
    this.#emit(begin + endEvent({ ...stage, annotations }));
  }
}
