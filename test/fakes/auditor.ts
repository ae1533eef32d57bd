import { createAuditor, type Auditor } from '../../src/audit/auditor.ts';
import type { AuditEvent } from './audit-event.ts';
import { audit, type AuditPolicy } from '../../src/config/audit.ts';

/** Returns an auditor that passes its events to `onEvent`. By default, no request is audited. */
export const auditor = (
  policy: unknown = { level: 'None' },
  onEvent: (event: AuditEvent) => void = () => undefined,
): Auditor => {
  const parsed: AuditPolicy = audit.parse({ policy }).policy;
  return createAuditor(
    () => parsed,
    () => [{ write: (event) => onEvent(JSON.parse(event) as AuditEvent), close: async () => undefined }],
  );
};
