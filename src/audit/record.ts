import type { AuditStage } from '../config/audit.ts';
import { redactText } from '../logger.ts';
import { Body, levelFor } from './bodies.ts';
import { describe, microTime, type Audited, type AuditedUser, type AuditEvent, type ResponseStatus } from './event.ts';
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
  readonly #emit: (event: string) => void;
  readonly #received: string;
  #requestBody: Body | undefined;
  readonly #responseBody: Body | undefined;
  readonly #annotations: Record<string, string> = {};
  #requestHeaders = noHeaders;
  #responseHeaders = noHeaders;
  #user: AuditedUser | undefined;

  /** `received`: milliseconds since the epoch. `emit` gets each event as JSON. */
  constructor(request: Audited, verdict: Verdict, received: number, emit: (event: string) => void) {
    this.#request = request;
    this.#verdict = { ...verdict, level: levelFor(verdict.level, request) };
    this.#emit = emit;
    this.#received = microTime(received);
    this.#responseBody = this.#verdict.level === 'RequestResponse' ? new Body() : undefined;
  }

  /** Given up at once if nobody wants to see it. */
  showRequest(body: Body): void {
    const { level } = this.#verdict;
    if (level === 'Request' || level === 'RequestResponse') this.#requestBody = body;
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
    this.#annotations[key] = value;
  }

  received(now: number): void {
    this.#write('RequestReceived', now, undefined, {});
  }

  started(now: number, code: number): void {
    this.#write('ResponseStarted', now, { code }, {});
  }

  complete(now: number, code: number, { failure, isWhole }: Answered): void {
    const { omitManagedFields } = this.#verdict;
    const requestObject = this.#requestBody?.object(this.#requestHeaders, omitManagedFields);
    const responseObject = this.#responseBody?.object(this.#responseHeaders, omitManagedFields);
    const isTruncated = [this.#requestBody, this.#responseBody].some((body) => body?.isTooLarge === true);
    if (isTruncated) this.annotate('audit.k8s.io/truncated', 'true');
    if (!isWhole) this.annotate('platform.io/aborted', 'true');
    this.#write(
      'ResponseComplete',
      now,
      { code, ...failure },
      {
        ...(requestObject === undefined ? {} : { requestObject }),
        ...(responseObject === undefined ? {} : { responseObject }),
      },
    );
  }

  #write(
    stage: AuditStage,
    now: number,
    status: ResponseStatus | undefined,
    objects: Pick<AuditEvent, 'requestObject' | 'responseObject'>,
  ): void {
    const { level, omitStages } = this.#verdict;
    if (level === 'None' || omitStages.includes(stage)) return;
    const event: AuditEvent = {
      ...describe(this.#request, level, this.#user ?? this.#request.user),
      stage,
      ...(status === undefined ? {} : { responseStatus: { metadata: {}, ...status } }),
      ...objects,
      requestReceivedTimestamp: this.#received,
      stageTimestamp: microTime(now),
      ...(Object.keys(this.#annotations).length === 0 ? {} : { annotations: this.#annotations }),
    };
    this.#emit(redactText(JSON.stringify(event)));
  }
}
