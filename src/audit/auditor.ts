/** Audit: who asked what of this server, and what came of it. */
import type { AuditSettings } from '../config/audit.ts';
import type { Audited } from './event.ts';
import { judge } from './policy.ts';
import { AuditRecord } from './record.ts';
import type { Sink } from './sink.ts';

export interface Auditor {
  /** `received`: when the request came, in milliseconds since the epoch. */
  begin(request: Audited, received: number): AuditRecord;
  /** There is a request of which a body would be shown. */
  mayShowBodies(): boolean;
}

/** By the policy in force when a request begins, to the sinks in force when there is something to say. */
export function createAuditor(policy: () => AuditSettings['policy'], sinks: () => readonly Sink[]): Auditor {
  const emit = (event: string): void => {
    for (const sink of sinks()) sink.write(event);
  };
  return {
    begin: (request, received) => new AuditRecord(request, judge(policy(), request), received, emit),
    mayShowBodies: () => policy().rules.some(({ level }) => level === 'Request' || level === 'RequestResponse'),
  };
}
