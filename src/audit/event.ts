/** Encodes Events of audit.k8s.io/v1 (k8s.io/apiserver pkg/apis/audit/v1/types.go). */
import { quoted, redactedJSON } from '../runtime/redaction.ts';
import { rfc3339 } from '../runtime/time.ts';
import type { AuditLevel, AuditStage } from '../config/audit.ts';

/** A user in an event. */
export interface AuditedUser {
  readonly username: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** The parts of a request that an event reports. */
export interface Audited {
  readonly auditID: string;
  /** Path and query as received, with secrets redacted. */
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
  /** Caller, undefined if not authenticated. */
  readonly user: AuditedUser | undefined;
  /** The impersonated user. */
  readonly impersonated?: AuditedUser | undefined;
}

/** The fields of metav1.Status that an event has. */
export interface ResponseStatus {
  readonly code: number;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** Formats milliseconds since the epoch as metav1.MicroTime. */
const microTime = (time: number): string =>
  `${rfc3339(time).slice(0, -1)}${String(Math.floor((time % 1) * 1_000)).padStart(3, '0')}Z`;

/** Maximum length of User-Agent. A longer value is truncated, because callers choose the value. */
export const maxUserAgent = 1024;

/** User of unauthenticated requests. */
export const anonymousUser: AuditedUser = { username: 'system:anonymous', groups: ['system:unauthenticated'] };

/**
 * Encodes a user without redaction: the event must have the name that was authorized, even if it looks like a token.
 */
function userText({ username, uid, groups, extra }: AuditedUser): string {
  const shown = extra === undefined || Object.keys(extra).length === 0 ? undefined : extra;
  return JSON.stringify({ username, uid, groups, extra: shown });
}

/** Encodes a member of an object; '' if the value is empty. */
const member = (name: string, value: string): string => (value === '' ? '' : `,"${name}":${quoted(value)}`);

function objectRef({ info }: Audited, created: string): string {
  if (!info.isResourceRequest) return '';
  const { resource, namespace, name, group, version, subresource } = info;
  const rest = member('namespace', namespace) + member('name', name || created) + member('apiGroup', group);
  return `,"objectRef":{"resource":${quoted(resource)}${rest}${member('apiVersion', version)}${member('subresource', subresource)}}`;
}

/**
 * Returns the start of an Event as JSON, with the fields that all stages of a request have in common. The event is
 * joined as text, because the bodies of `endEvent` are already JSON. `received`: milliseconds since the epoch.
 * `created`: name of the created object, if it is known.
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
    `,"requestURI":${quoted(shownURL)},"verb":${quoted(info.verb)},"user":${userText(user ?? anonymousUser)}` +
    (impersonated === undefined ? '' : `,"impersonatedUser":${userText(impersonated)}`) +
    `,"sourceIPs":[${quoted(sourceIP)}]${member('userAgent', userAgent.slice(0, maxUserAgent))}${objectRef(request, created)}` +
    `,"requestReceivedTimestamp":"${microTime(received)}"`
  );
}

/** Fields that a stage adds. */
export interface Stage {
  readonly stage: AuditStage;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly status?: ResponseStatus | undefined;
  /** Redacted JSON. */
  readonly requestObject?: string | undefined;
  readonly responseObject?: string | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** Encodes a member whose value is JSON already; '' if it is undefined. */
const part = (name: string, text: string | undefined): string => (text === undefined ? '' : `,"${name}":${text}`);

const statusText = ({ code, status = '', reason = '', message = '' }: ResponseStatus): string =>
  `{"metadata":{}${member('status', status)}${member('message', message)}${member('reason', reason)},"code":${code}}`;

/** Returns the rest of an Event. */
export const endEvent = ({ stage, time, status, requestObject, responseObject, annotations }: Stage): string =>
  `,"stage":"${stage}","stageTimestamp":"${microTime(time)}"` +
  part('responseStatus', status && statusText(status)) +
  part('requestObject', requestObject) +
  part('responseObject', responseObject) +
  `${part('annotations', annotations && redactedJSON(annotations))}}`;
