/** What is said of a request: Event of audit.k8s.io/v1 (k8s.io/apiserver pkg/apis/audit/v1/types.go). */
import { isSecret } from '../logger.ts';
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
  /** As it came, with the query. */
  readonly url: string;
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

/** metav1.MicroTime, of milliseconds since the epoch. */
export function microTime(time: number): string {
  const whole = Math.floor(time);
  const micro = Math.floor((time - whole) * 1_000);
  return `${new Date(whole).toISOString().slice(0, -1)}${String(micro).padStart(3, '0')}Z`;
}

/** Longer ones are cut: a caller chooses them. */
const longestURI = 4096;
const longestAgent = 1024;

/** The URL without what is nobody's business: the values of parameters that are secrets. */
function shownURI(url: string): string {
  const at = url.indexOf('?');
  if (at === -1) return url.slice(0, longestURI);
  const pairs = url
    .slice(at + 1)
    .split('&')
    .map((pair) => {
      const [key = ''] = pair.split('=', 1);
      return isSecret(decoded(key)) ? `${key}=redacted` : pair;
    });
  return `${url.slice(0, at)}?${pairs.join('&')}`.slice(0, longestURI);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

/** Only what is there. */
const filled = (members: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ''));

function objectRef({ info }: Audited): AuditEvent['objectRef'] {
  if (!info.isResourceRequest) return undefined;
  const { resource, namespace, name, group, version, subresource } = info;
  return filled({ resource, namespace, name, apiGroup: group, apiVersion: version, subresource });
}

const nobody: AuditedUser = { username: 'system:anonymous', groups: ['system:unauthenticated'] };

const shownUser = ({ username, uid, groups, extra }: AuditedUser): AuditedUser => ({
  username,
  ...(uid === undefined ? {} : { uid }),
  groups,
  ...(extra === undefined || Object.keys(extra).length === 0 ? {} : { extra }),
});

/** What all stages of a request have in common. */
export function describe(
  request: Audited,
  level: AuditLevel,
  user: AuditedUser = nobody,
): Omit<AuditEvent, 'stage' | 'stageTimestamp' | 'requestReceivedTimestamp'> {
  const { auditID, url, info, sourceIP, userAgent, impersonated } = request;
  const ref = objectRef(request);
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level,
    auditID,
    requestURI: shownURI(url),
    verb: info.verb,
    user: shownUser(user),
    ...(impersonated === undefined ? {} : { impersonatedUser: shownUser(impersonated) }),
    sourceIPs: [sourceIP],
    ...(userAgent === '' ? {} : { userAgent: userAgent.slice(0, longestAgent) }),
    ...(ref === undefined ? {} : { objectRef: ref }),
  };
}
