/**
 * Creates `metadata.managedFields` in the format of kube-apiserver (sigs.k8s.io/structured-merge-diff,
 * fieldpath/serialize.go).
 */

/**
 * Keys of lists with individually owned items (the API's listType=map); the owner of any other list owns the whole
 * list.
 */
const listKeys: Readonly<Record<string, readonly string[]>> = {
  addresses: ['type'],
  conditions: ['type'],
  containers: ['name'],
  env: ['name'],
  hostIPs: ['ip'],
  podIPs: ['ip'],
  ports: ['containerPort', 'protocol'],
  volumeMounts: ['mountPath'],
  volumes: ['name'],
};
/** Lists that every object has. No manager owns their existence. */
const always = new Set(['containers']);
/** Fields not owned by the writer of an object. */
const unowned = new Set(['apiVersion', 'kind', 'name', 'namespace']);

type Fields = { [key: string]: Fields };

export interface Written {
  readonly manager: string;
  readonly time: string;
  readonly subresource?: string;
}

/** Returns the entry of a manager who wrote all of `object`. */
export const managedFields = (object: object, { manager, time, subresource }: Written): object => ({
  manager,
  operation: 'Update',
  apiVersion: 'v1',
  time,
  fieldsType: 'FieldsV1',
  fieldsV1: topFields(object),
  ...(subresource === undefined ? {} : { subresource }),
});

const owned = (of: object): [string, unknown][] => Object.entries(of).filter(([key]) => !unowned.has(key));

/** Top-level fields, metadata and status always exist, so no manager owns their existence. */
function topFields(object: object): Fields {
  return Object.fromEntries(
    owned(object).map(([part, value]) => [
      `f:${part}`,
      Object.fromEntries(owned(value as object).map(([key, one]) => [`f:${key}`, fieldsOf(one, key)])),
    ]),
  );
}

function fieldsOf(value: unknown, name: string): Fields {
  if (typeof value !== 'object' || value === null) return {};
  if (!Array.isArray(value)) {
    const entries = Object.entries(value);
    if (entries.length === 0) return {};
    return { '.': {}, ...Object.fromEntries(entries.map(([key, one]) => [`f:${key}`, fieldsOf(one, key)])) };
  }
  const keys = listKeys[name];
  if (keys === undefined) return {};
  const items = value as Readonly<Record<string, unknown>>[];
  return {
    ...(always.has(name) ? {} : { '.': {} }),
    ...Object.fromEntries(
      items.map((item) => [
        `k:${JSON.stringify(Object.fromEntries(keys.map((key) => [key, item[key]])))}`,
        fieldsOf(item, ''),
      ]),
    ),
  };
}
