/** Filters of lists and watches, parsed from the text of parameters. */
import { isDeepStrictEqual } from 'node:util';
import type { IndexedValues, IndexName } from '../../cluster/cache/indexes.ts';
import type { ObjectFilter } from '../../cluster/cache/selection.ts';
import { labelOf, type StoredObject } from '../../cluster/cache/stored-object.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { parseFieldPath, scalarAt } from './field-path.ts';
import { matcher, parseFieldSelector, parseLabelSelector, type LabelRequirement } from './selectors.ts';

export type { ObjectFilter } from '../../cluster/cache/selection.ts';

type Filters = readonly ObjectFilter<unknown>[];

/** Creates a filter that equal requests share. `key` describes the condition completely. */
export function sharedFilter<F>(
  key: string,
  passes: (object: StoredObject<F>) => boolean,
  indexed?: IndexedValues,
): ObjectFilter<F> {
  return Object.assign((object: StoredObject<F>) => passes(object), {
    key,
    ...(indexed === undefined ? {} : { indexed }),
  });
}

/** Creates a filter that searches the object's bytes for a value. */
const lookUp = (key: string, passes: (object: StoredObject<unknown>) => boolean): ObjectFilter<unknown> =>
  Object.assign(sharedFilter(key, passes), { isLookUp: true as const });

export const inIndex = (index: IndexName, values: readonly string[]): IndexedValues => ({
  index,
  values,
});

export const nameContains = (text: string): Filters => [
  sharedFilter(`name=${text}`, ({ name }) => name.includes(text)),
];

export function nameIsOneOf(text: string): Filters {
  const names = new Set(text.split(','));
  return [sharedFilter(`names=${text}`, ({ name }) => names.has(name), inIndex('name', [...names]))];
}

export const propertyIs =
  (property: 'uid' | 'namespace') =>
  (text: string): Filters => [
    sharedFilter(`${property}=${text}`, (object) => object[property] === text, inIndex(property, [text])),
  ];

/** Creates a filter for objects with an owner whose `property` equals a given text. */
export const ownedBy =
  (property: 'uid' | 'kind') =>
  (text: string): Filters => [
    sharedFilter(`owner ${property}=${text}`, ({ ownerReferences }) =>
      ownerReferences.some((owner) => owner[property] === text),
    ),
  ];

/** Annotations with the display name of an object. Objects that KubeSphere has created have the second annotation. */
export const aliasAnnotations = ['platform.io/alias-name', 'kubesphere.io/alias-name'] as const;
const aliases = aliasAnnotations.map((annotation) => scalarAt(['metadata', 'annotations', annotation]));

export function aliasContains(text: string): Filters {
  const part = text.toLowerCase();
  const passes = (object: StoredObject<unknown>): boolean =>
    aliases.some((aliasOf) =>
      String(aliasOf(object) ?? '')
        .toLowerCase()
        .includes(part),
    );
  return [lookUp(`alias=${part}`, passes)];
}

export const annotationFilters = (selector: string): Filters =>
  parseLabelSelector(selector, true).map((requirement) => {
    const annotation = scalarAt(['metadata', 'annotations', requirement.key]);
    const meets = matcher([requirement], (object: StoredObject<unknown>) => annotation(object) as string | undefined);
    return lookUp(`annotation ${JSON.stringify(requirement)}`, meets);
  });

/** Returns the filter of a label selector, or no filter if the selector selects everything. Throws 400. */
export function labelFilters(text: string): Filters {
  const selector = parseLabelSelector(text);
  return selector.length === 0
    ? []
    : [sharedFilter(`labelSelector=${text}`, matcher(selector, labelOf), indexedOf(selector))];
}

/** Returns an index entry that contains all matching objects, if one of the requirements has an index. */
function indexedOf(requirements: readonly LabelRequirement[]): IndexedValues | undefined {
  const one = requirements.find(({ operator }) => operator === '=' || operator === 'in');
  return one === undefined ? undefined : inIndex(`label ${one.key}`, one.values);
}

/** A value that the scalar at a path must equal, or must not equal. */
export interface FieldTerm {
  readonly path: readonly string[];
  readonly equals: boolean;
  readonly value: string;
}

const termSyntax = '; write each term as path=value or path!=value, as in spec.unschedulable=true';

/** Parses a field selector. Throws 400. */
export const parseFieldTerms = (text: string): readonly FieldTerm[] =>
  parseFieldSelector(text, termSyntax).map((term) => ({ ...term, path: parseFieldPath(term.path) }));

/**
 * Returns the filter of a term. A missing field equals the empty string, unless Kubernetes defines a default for the
 * field.
 */
export function fieldFilter<F>(
  { path, equals, value }: FieldTerm,
  definition: Pick<ResourceDefinition<F>, 'fieldLabels' | 'fieldLabel'>,
): ObjectFilter<F> {
  const key = `field ${JSON.stringify([path, equals, value])}`;
  const label = definition.fieldLabels.find((one) => isDeepStrictEqual(parseFieldPath(one), path));
  if (label !== undefined)
    return sharedFilter(key, (object) => (definition.fieldLabel(object, label) === value) === equals);
  const field = scalarAt(path);
  return lookUp(key, (object) => {
    const found = field(object) ?? '';
    return ((typeof found === 'string' ? found : String(found)) === value) === equals;
  });
}
