/**
 * Recognizes requests that change only the displayName. Users are allowed to change the displayName of their own User
 * by PUT, merge patch or JSON patch.
 */
import { isDeepStrictEqual } from 'node:util';
import type { User } from '../accounts/directory/users.ts';
import { recordOf, type JSONValue } from '../http/request/json-body.ts';

export const mergePatch = 'application/merge-patch+json';
export const jsonPatch = 'application/json-patch+json';

export interface DisplayName {
  /** New displayName; null removes it. */
  readonly displayName: string | null;
  /** Required resourceVersion of the object; '' if any resourceVersion is accepted. */
  readonly resourceVersion: string;
}

const isDisplayName = (value: unknown): value is string | null => value === null || typeof value === 'string';

/** Returns the displayName that the request sets; undefined if the request changes anything else. */
export function displayNameIn({ contentType, value }: JSONValue, current: User): DisplayName | undefined {
  if (contentType === jsonPatch) return inJsonPatch(value);
  const isPut = contentType !== mergePatch;
  const { apiVersion, kind, metadata = {}, spec = {}, ...rest } = recordOf(value) ?? { value };
  const newMetadata = recordOf(metadata);
  const newSpec = recordOf(spec);
  if (newMetadata === undefined || newSpec === undefined) return undefined;
  const { displayName = isPut ? null : undefined, ...others } = newSpec;
  const { resourceVersion = '' } = newMetadata;
  const isSame =
    [undefined, current.apiVersion].includes(apiVersion as undefined) &&
    [undefined, current.kind].includes(kind as undefined) &&
    [undefined, current.metadata.name].includes(newMetadata['name'] as undefined) &&
    (isPut ? isUnchanged(current, newMetadata, others, rest) : Object.keys({ ...others, ...rest }).length === 0) &&
    (isPut || Object.keys(newMetadata).every((key) => key === 'name' || key === 'resourceVersion'));
  return isSame && isDisplayName(displayName) && typeof resourceVersion === 'string'
    ? { displayName, resourceVersion }
    : undefined;
}

/**
 * Compares the current object with the object in a PUT. Ignores fields that kube-apiserver sets, and the status, which
 * PUT does not write.
 */
function isUnchanged(
  { metadata, spec = {} }: User,
  newMetadata: Readonly<Record<string, unknown>>,
  others: Readonly<Record<string, unknown>>,
  rest: Readonly<Record<string, unknown>>,
): boolean {
  const { displayName: _, ...current } = spec;
  const kept = ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const;
  return (
    isDeepStrictEqual({ ...current }, { ...others }) &&
    kept.every((key) => isDeepStrictEqual(newMetadata[key] ?? {}, metadata[key] ?? {})) &&
    Object.keys(rest).every((key) => key === 'status')
  );
}

/** Accepts only operations of RFC 6902 that set or remove `/spec/displayName`. */
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
