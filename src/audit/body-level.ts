/** Of which requests an event may show bodies, and of which never. */
import { configGroup, iamGroup, resourcesGroup } from '../config/names.ts';
import type { AuditLevel } from '../config/audit.ts';
import type { Audited } from './event.ts';

/** What holds passwords, keys or tokens, by group and resource: of them never more than that they were asked for. */
const secretive: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  // Our own configuration is a ConfigMap.
  ['', new Set(['secrets', 'configmaps', 'serviceaccounts/token'])],
  ['authentication.k8s.io', new Set(['tokenreviews'])],
  // Every resource of the cluster, also by such names as secrets.v1 and sessions.iam.platform.io.
  [resourcesGroup, new Set(['secrets', 'configmaps', 'sessions', 'tokenreviews'])],
  [iamGroup, new Set(['users/password', 'sessions', 'users/sessions'])],
  [configGroup, new Set(['kubeconfig'])],
]);

/**
 * The level at which a request is told of, whatever the policy says. What is no resource, such as /oauth/token, has bodies of its own, and
 * so has what is somebody's own server behind kube-apiserver; a stream is no body.
 */
export function levelFor(level: AuditLevel, { info }: Audited): AuditLevel {
  if (level !== 'Request' && level !== 'RequestResponse') return level;
  if (!info.isResourceRequest || info.isLongRunning) return 'Metadata';
  const { group, subresource } = info;
  const [resource = ''] = info.resource.split('.', 1);
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  const among = secretive.get(group);
  return among?.has(whole) === true || among?.has(resource) === true ? 'Metadata' : level;
}

const secretKinds = /^(?:Secret|ConfigMap|TokenReview|TokenRequest|Session)(?:List)?$/;

interface Described {
  readonly kind?: unknown;
  readonly items?: unknown;
}

/** An object that has no business where it was sent, or in a list of all kinds. */
export function isSecretive(object: unknown): boolean {
  if (Array.isArray(object)) return object.some(isSecretive);
  if (typeof object !== 'object' || object === null) return false;
  const { kind, items } = object as Described;
  return (typeof kind === 'string' && secretKinds.test(kind)) || (Array.isArray(items) && items.some(isSecretive));
}
