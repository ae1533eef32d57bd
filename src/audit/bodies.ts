/** What an event may show of the bodies of a request and its answer. */
import { gunzipSync } from 'node:zlib';
import type { AuditLevel } from '../config/audit.ts';
import type { Audited } from './event.ts';

/** Bytes of one body; of a larger one nothing is shown. */
export const largestBody = 512 * 1024;

/** What holds passwords, keys or tokens, by group and resource: of them never more than that they were asked for. */
const secretive: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  // Our own configuration is a ConfigMap.
  ['', new Set(['secrets', 'configmaps', 'serviceaccounts/token'])],
  ['authentication.k8s.io', new Set(['tokenreviews'])],
  // Every resource of the cluster, also by such names as secrets.v1 and sessions.iam.platform.io.
  ['resources.platform.io', new Set(['secrets', 'configmaps', 'sessions', 'tokenreviews'])],
  ['iam.platform.io', new Set(['users/password', 'sessions', 'users/sessions'])],
  ['config.platform.io', new Set(['kubeconfig'])],
]);

/** The level at which a request is told of, whatever the policy says. What is no resource, such as /oauth/token, has bodies of its own. */
export function levelFor(level: AuditLevel, { info }: Audited): AuditLevel {
  if (level !== 'Request' && level !== 'RequestResponse') return level;
  if (!info.isResourceRequest) return 'Metadata';
  const { group, subresource } = info;
  const [resource = ''] = info.resource.split('.', 1);
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  const among = secretive.get(group);
  return among?.has(whole) === true || among?.has(resource) === true ? 'Metadata' : level;
}

/** Collects a body while it passes. */
export class Body {
  readonly #chunks: Uint8Array[] = [];
  #length = 0;
  #isWanted = true;

  /** More than is shown. */
  get isTooLarge(): boolean {
    return this.#length > largestBody;
  }

  giveUp(): void {
    this.#isWanted = false;
    this.#chunks.length = 0;
  }

  add(chunk: Uint8Array): void {
    if (!this.#isWanted) return;
    this.#length += chunk.length;
    if (this.isTooLarge) this.#chunks.length = 0;
    else this.#chunks.push(chunk);
  }

  /** Decoded; undefined if it is no JSON that can be shown. */
  object(headers: { readonly type: string; readonly encoding: string }, omitManagedFields: boolean): unknown {
    if (this.#length === 0 || this.isTooLarge || !/^application\/([\w.-]+\+)?json\b/.test(headers.type))
      return undefined;
    try {
      const bytes = Buffer.concat(this.#chunks);
      const text = headers.encoding === 'gzip' ? gunzipSync(bytes, { maxOutputLength: largestBody }) : bytes;
      const object = JSON.parse(text.toString('utf8')) as unknown;
      return omitManagedFields ? withoutManagedFields(object) : object;
    } catch {
      return undefined;
    }
  }
}

interface Described {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly items?: readonly unknown[];
}

function withoutManagedFields(object: unknown): unknown {
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return object;
  const { metadata, items } = object as Described;
  const { managedFields: _, ...rest } = metadata ?? {};
  return {
    ...object,
    ...(metadata === undefined ? {} : { metadata: rest }),
    ...(Array.isArray(items) ? { items: items.map(withoutManagedFields) } : {}),
  };
}
