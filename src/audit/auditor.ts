/** Creates audit records of requests and writes them to the sinks. */
import type { AuditSettings } from '../config/audit.ts';
import { auditEvents } from '../runtime/metrics/definitions.ts';
import { AuditBody, BodyBudget } from './bodies.ts';
import type { Audited } from './event.ts';
import { evaluatePolicy } from './policy.ts';
import { AuditRecord } from './record.ts';
import type { Sink } from './sink.ts';

export interface Auditor {
  /** `received` is the time of the request, in milliseconds since the epoch. */
  begin(request: Audited, received: number): AuditRecord;
  /** Returns a collector for a request body; undefined if the policy shows no bodies at all. */
  body(): AuditBody | undefined;
  /** Counts a request. Returns the function to call when the request has ended and its event is written. */
  enter(): () => void;
  /** Resolves once all counted requests have ended. */
  idle(): Promise<void>;
}

/**
 * Creates the auditor. A record uses the policy in force when its request starts; an event goes to the sinks in force
 * when it is written.
 */
export function createAuditor(policy: () => AuditSettings['policy'], sinks: () => readonly Sink[]): Auditor {
  const emit = (event: string): void => {
    auditEvents.add({});
    for (const sink of sinks()) sink.write(event);
  };
  const budget = new BodyBudget();
  let open = 0;
  let waiting: (() => void)[] = [];
  const leave = (): void => {
    open -= 1;
    if (open > 0) return;
    for (const done of waiting) done();
    waiting = [];
  };
  return {
    begin: (request, received) => new AuditRecord(request, evaluatePolicy(policy(), request), received, budget, emit),
    body: () =>
      policy().rules.some(({ level }) => level === 'Request' || level === 'RequestResponse')
        ? new AuditBody(budget)
        : undefined,
    enter() {
      open += 1;
      return leave;
    },
    idle: () => (open === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}
