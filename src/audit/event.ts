/** What is said of a request: Event of audit.k8s.io/v1 (k8s.io/apiserver pkg/apis/audit/v1/types.go). */
import { quoted, redactedJSON } from '../runtime/redaction.ts';
import type { AuditLevel, AuditStage } from '../config/audit.ts';

/** Who, as an event names them. */
export interface AuditedUser {
  readonly username: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** A request, as far as an event tells of it. */
export interface Audited {
  readonly auditID: string;
  /** As it came, with the query, but for the secrets in that. */
  readonly shownURL: string;
  readonly info: {
    readonly path: string;
    readonly isResourceRequest: boolean;
    readonly verb: string;
    readonly group: string;
    readonly version: string;
    readonly namespace: string;
    readonly resource: string;
    readonly subresource: string;
    readonly name: string;
    readonly isLongRunning: boolean;
  };
  readonly sourceIP: string;
  readonly userAgent: string;
  /** Undefined if nobody has shown who they are. */
  readonly user: AuditedUser | undefined;
  /** Who they act as. */
  readonly impersonated?: AuditedUser | undefined;
}

/** metav1.Status, as far as an event has it. */
export interface ResponseStatus {
  readonly code: number;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** metav1.MicroTime, of milliseconds since the epoch. */
const microTime = (time: number): string =>
  `${new Date(time).toISOString().slice(0, -1)}${String(Math.floor((time % 1) * 1_000)).padStart(3, '0')}Z`;

/** Longer ones are cut: a caller chooses them. */
export const maxUserAgent = 1024;

/** Who has not shown who they are. */
export const nobody: AuditedUser = { username: 'system:anonymous', groups: ['system:unauthenticated'] };

/** Nothing is redacted: the name in the audit is the name that was authorized, even if it looks like a token. */
function userText({ username, uid, groups, extra }: AuditedUser): string {
  const shown = extra === undefined || Object.keys(extra).length === 0 ? undefined : extra;
  return JSON.stringify({ username, uid, groups, extra: shown });
}

/** Only what is there. */
const member = (name: string, value: string): string => (value === '' ? '' : `,"${name}":${quoted(value)}`);

function objectRef({ info }: Audited, created: string): string {
  if (!info.isResourceRequest) return '';
  const { resource, namespace, name, group, version, subresource } = info;
  const rest = member('namespace', namespace) + member('name', name || created) + member('apiGroup', group);
  return `,"objectRef":{"resource":${quoted(resource)}${rest}${member('apiVersion', version)}${member('subresource', subresource)}}`;
}

/**
 * What all stages of a request have in common: the beginning of an Event as JSON. Joined as text, because the bodies of `endEvent`
 * are JSON already. `received`: milliseconds since the epoch. `created`: the name of a new object, if it is known.
 */
export function beginEvent(
  request: Audited,
  level: AuditLevel,
  user: AuditedUser | undefined,
  received: number,
  created: string,
): string {
  const { auditID, shownURL, info, sourceIP, userAgent, impersonated } = request;
  return (
    `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${level}","auditID":${quoted(auditID)}` +
    `,"requestURI":${quoted(shownURL)},"verb":${quoted(info.verb)},"user":${userText(user ?? nobody)}` +
    (impersonated === undefined ? '' : `,"impersonatedUser":${userText(impersonated)}`) +
    `,"sourceIPs":[${quoted(sourceIP)}]${member('userAgent', userAgent.slice(0, maxUserAgent))}${objectRef(request, created)}` +
    `,"requestReceivedTimestamp":"${microTime(received)}"`
  );
}

/** What a stage adds. */
export interface Stage {
  readonly stage: AuditStage;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly status?: ResponseStatus | undefined;
  /** As JSON, with nothing in it that is not to be shown. */
  readonly requestObject?: string | undefined;
  readonly responseObject?: string | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

const part = (name: string, text: string | undefined): string => (text === undefined ? '' : `,"${name}":${text}`);

const statusText = ({ code, status = '', reason = '', message = '' }: ResponseStatus): string =>
  `{"metadata":{}${member('status', status)}${member('message', message)}${member('reason', reason)},"code":${code}}`;

/** The rest of the Event. */
export const endEvent = ({ stage, time, status, requestObject, responseObject, annotations }: Stage): string =>
  `,"stage":"${stage}","stageTimestamp":"${microTime(time)}"` +
  part('responseStatus', status && statusText(status)) +
  part('requestObject', requestObject) +
  part('responseObject', responseObject) +
  `${part('annotations', annotations && redactedJSON(annotations))}}`;
