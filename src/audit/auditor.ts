/** Audit: who asked what of this server, and what came of it. */
import type { AuditSettings } from '../config/audit.ts';
import { AuditBody, BodyRoom } from './bodies.ts';
import type { Audited } from './event.ts';
import { judge } from './policy.ts';
import { AuditRecord } from './record.ts';
import type { Sink } from './sink.ts';

export interface Auditor {
  /** `received`: when the request came, in milliseconds since the epoch. */
  begin(request: Audited, received: number): AuditRecord;
  /** For the body of a request; undefined if there is no request of which one would be shown. */
  body(): AuditBody | undefined;
  /** A request has come; what is returned says that it is over, and written down. */
  enter(): () => void;
  /** Resolves once every request that has come is over. */
  idle(): Promise<void>;
}

/** By the policy in force when a request begins, to the sinks in force when there is something to say. */
export function createAuditor(policy: () => AuditSettings['policy'], sinks: () => readonly Sink[]): Auditor {
  const emit = (event: string): void => {
    for (const sink of sinks()) sink.write(event);
  };
  const room = new BodyRoom();
  let open = 0;
  let waiting: (() => void)[] = [];
  const leave = (): void => {
    open -= 1;
    if (open > 0) return;
    for (const done of waiting) done();
    waiting = [];
  };
  return {
    begin: (request, received) => new AuditRecord(request, judge(policy(), request), received, room, emit),
    body: () =>
      policy().rules.some(({ level }) => level === 'Request' || level === 'RequestResponse')
        ? new AuditBody(room)
        : undefined,
    enter() {
      open += 1;
      return leave;
    },
    idle: () => (open === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}
