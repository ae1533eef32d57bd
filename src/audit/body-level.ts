/** Determines which bodies an event is allowed to show. */
import { configGroup, iamGroup, resourcesGroup } from '../config/names.ts';
import type { AuditLevel } from '../config/audit.ts';
import type { Audited } from './event.ts';

/** Resources that contain passwords, keys or tokens, by group. Their events never show more than metadata. */
const sensitive: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  // The configuration of this server is a ConfigMap.
  ['', new Set(['secrets', 'configmaps', 'serviceaccounts/token'])],
  ['authentication.k8s.io', new Set(['tokenreviews'])],
  // This group serves all resources of the cluster, including names such as secrets.v1 and sessions.iam.platform.io.
  [resourcesGroup, new Set(['secrets', 'configmaps', 'sessions', 'tokenreviews'])],
  [iamGroup, new Set(['users/password', 'sessions', 'users/sessions'])],
  [configGroup, new Set(['kubeconfig'])],
]);

/**
 * Returns the level of an event. The level is at most Metadata for requests whose bodies must not be shown: sensitive
 * resources, non-resource requests such as /oauth/token, and streams. Streams include requests that kube-apiserver
 * proxies to other servers.
 */
export function effectiveLevel(level: AuditLevel, { info }: Audited): AuditLevel {
  if (level !== 'Request' && level !== 'RequestResponse') return level;
  if (!info.isResourceRequest || info.isLongRunning) return 'Metadata';
  const { group, subresource } = info;
  const [resource = ''] = info.resource.split('.', 1);
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  const among = sensitive.get(group);
  return among?.has(whole) === true || among?.has(resource) === true ? 'Metadata' : level;
}

const sensitiveKinds = /^(?:Secret|ConfigMap|TokenReview|TokenRequest|Session)(?:List)?$/;

interface KubeObject {
  readonly kind?: unknown;
  readonly items?: unknown;
}

/**
 * Returns true for an object of a sensitive kind, or a list that contains such an object, regardless of the resource in
 * the request.
 */
export function isSensitive(object: unknown): boolean {
  if (Array.isArray(object)) return object.some(isSensitive);
  if (typeof object !== 'object' || object === null) return false;
  const { kind, items } = object as KubeObject;
  return (typeof kind === 'string' && sensitiveKinds.test(kind)) || (Array.isArray(items) && items.some(isSensitive));
}
