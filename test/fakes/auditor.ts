import { createAuditor, type Auditor } from '../../src/audit/auditor.ts';
import type { AuditEvent } from './audit-event.ts';
import { audit, type AuditPolicy } from '../../src/config/audit.ts';

/** Hands its events to `tell`; by default nothing is told of anything. */
export const auditor = (
  policy: unknown = { level: 'None' },
  tell: (event: AuditEvent) => void = () => undefined,
): Auditor => {
  const parsed: AuditPolicy = audit.parse({ policy }).policy;
  return createAuditor(
    () => parsed,
    () => [{ write: (event) => tell(JSON.parse(event) as AuditEvent), close: async () => undefined }],
  );
};
