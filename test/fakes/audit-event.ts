import type { AuditedUser, ResponseStatus } from '../../src/audit/event.ts';
import type { AuditLevel, AuditStage } from '../../src/config/audit.ts';

/** The parts of k8s.io/apiserver pkg/apis/audit/v1/types.go that this server writes. */
export interface AuditEvent {
  readonly kind: 'Event';
  readonly apiVersion: 'audit.k8s.io/v1';
  readonly level: AuditLevel;
  readonly auditID: string;
  readonly stage: AuditStage;
  readonly requestURI: string;
  readonly verb: string;
  readonly user: AuditedUser;
  readonly impersonatedUser?: AuditedUser;
  readonly sourceIPs: readonly string[];
  readonly userAgent?: string;
  readonly objectRef?: Readonly<Record<string, string>>;
  readonly responseStatus?: ResponseStatus & { readonly metadata: Readonly<Record<string, never>> };
  readonly requestObject?: unknown;
  readonly responseObject?: unknown;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
  readonly annotations?: Readonly<Record<string, string>>;
}
