/** The change of the displayName, which users may make to their own User: as PUT, merge patch or JSON patch. */
import { isDeepStrictEqual } from 'node:util';
import type { User } from '../accounts/directory/users.ts';
import { recordOf, type JSONValue } from '../http/request/json-body.ts';

export const mergePatch = 'application/merge-patch+json';
export const jsonPatch = 'application/json-patch+json';

export interface DisplayName {
  /** Null: none. */
  readonly displayName: string | null;
  /** Version that the object must have; '' for any. */
  readonly resourceVersion: string;
}

const isDisplayName = (value: unknown): value is string | null => value === null || typeof value === 'string';

/** Returns undefined if the request changes anything else. */
export function displayNameIn({ contentType, value }: JSONValue, current: User): DisplayName | undefined {
  if (contentType === jsonPatch) return inJsonPatch(value);
  const whole = contentType !== mergePatch;
  const { apiVersion, kind, metadata = {}, spec = {}, ...rest } = recordOf(value) ?? { value };
  const said = recordOf(metadata);
  const wanted = recordOf(spec);
  if (said === undefined || wanted === undefined) return undefined;
  const { displayName = whole ? null : undefined, ...others } = wanted;
  const { resourceVersion = '' } = said;
  const isSame =
    [undefined, current.apiVersion].includes(apiVersion as undefined) &&
    [undefined, current.kind].includes(kind as undefined) &&
    [undefined, current.metadata.name].includes(said['name'] as undefined) &&
    (whole ? isUnchanged(current, said, others, rest) : Object.keys({ ...others, ...rest }).length === 0) &&
    (whole || Object.keys(said).every((key) => key === 'name' || key === 'resourceVersion'));
  return isSame && isDisplayName(displayName) && typeof resourceVersion === 'string'
    ? { displayName, resourceVersion }
    : undefined;
}

/** Compares a whole object. Fields that kube-apiserver sets are skipped, and so is the status, which PUT does not write. */
function isUnchanged(
  { metadata, spec = {} }: User,
  said: Readonly<Record<string, unknown>>,
  others: Readonly<Record<string, unknown>>,
  rest: Readonly<Record<string, unknown>>,
): boolean {
  const { displayName: _, ...before } = spec;
  const kept = ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const;
  return (
    isDeepStrictEqual({ ...before }, { ...others }) &&
    kept.every((key) => isDeepStrictEqual(said[key] ?? {}, metadata[key] ?? {})) &&
    Object.keys(rest).every((key) => key === 'status')
  );
}

/** RFC 6902: only operations that set or remove this one member. */
function inJsonPatch(value: unknown): DisplayName | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  let displayName: unknown;
  for (const one of value as unknown[]) {
    const { op, path, value: set, ...rest } = recordOf(one) ?? {};
    if (path !== '/spec/displayName' || Object.keys(rest).length > 0) return undefined;
    if (op !== 'add' && op !== 'replace' && op !== 'remove') return undefined;
    displayName = op === 'remove' ? null : set;
  }
  return isDisplayName(displayName) ? { displayName, resourceVersion: '' } : undefined;
}
