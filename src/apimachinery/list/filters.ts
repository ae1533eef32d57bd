/** The filters of lists and watches, made of the texts of parameters. */
import { isDeepStrictEqual } from 'node:util';
import { labelOf, type IndexName, type ObjectFilter } from '../../cluster/cache/selection.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { parseFieldPath, scalarAt } from './field-path.ts';
import { matcher, parseFieldSelector, parseLabelSelector, type LabelRequirement } from './selectors.ts';

export type { ObjectFilter } from '../../cluster/cache/selection.ts';

type Filters = readonly ObjectFilter<unknown>[];

/** A filter that can be shared by all who ask the same. `key`: what it asks, in full. */
export function shared<F>(
  key: string,
  passes: (object: StoredObject<F>) => boolean,
  within?: ObjectFilter<F>['within'],
): ObjectFilter<F> {
  return Object.assign((object: StoredObject<F>) => passes(object), {
    key,
    ...(within === undefined ? {} : { within }),
  });
}

/** The same for a value that is looked for in the object's bytes. */
const lookUp = (key: string, passes: (object: StoredObject<unknown>) => boolean): ObjectFilter<unknown> =>
  Object.assign(shared(key, passes), { isLookUp: true as const });

export const among = (index: IndexName, values: readonly string[]): ObjectFilter<unknown>['within'] => ({
  index,
  values,
});

export const nameContains = (text: string): Filters => [shared(`name=${text}`, ({ name }) => name.includes(text))];

export function nameIsOneOf(text: string): Filters {
  const names = new Set(text.split(','));
  return [shared(`names=${text}`, ({ name }) => names.has(name), among('name', [...names]))];
}

export const propertyIs =
  (property: 'uid' | 'namespace') =>
  (text: string): Filters => [
    shared(`${property}=${text}`, (object) => object[property] === text, among(property, [text])),
  ];

/** An owner has this value there. */
export const ownedBy =
  (property: 'uid' | 'kind') =>
  (text: string): Filters => [
    shared(`owner ${property}=${text}`, ({ ownerReferences }) =>
      ownerReferences.some((owner) => owner[property] === text),
    ),
  ];

/** Another name of an object, for people to read. */
const aliasOf = scalarAt(['metadata', 'annotations', 'platform.io/alias-name']);

export function aliasContains(text: string): Filters {
  const part = text.toLowerCase();
  const passes = (object: StoredObject<unknown>): boolean =>
    String(aliasOf(object) ?? '')
      .toLowerCase()
      .includes(part);
  return [lookUp(`alias=${part}`, passes)];
}

export const annotationFilters = (selector: string): Filters =>
  parseLabelSelector(selector, true).map((requirement) => {
    const annotation = scalarAt(['metadata', 'annotations', requirement.key]);
    const meets = matcher([requirement], (object: StoredObject<unknown>) => annotation(object) as string | undefined);
    return lookUp(`annotation ${JSON.stringify(requirement)}`, meets);
  });

/** No filter for a selector that selects everything. Throws 400. */
export function labelFilters(text: string): Filters {
  const selector = parseLabelSelector(text);
  return selector.length === 0 ? [] : [shared(`labelSelector=${text}`, matcher(selector, labelOf), withinOf(selector))];
}

/** An index knows all objects that can meet one of these. */
function withinOf(requirements: readonly LabelRequirement[]): ObjectFilter<unknown>['within'] {
  const one = requirements.find(({ operator }) => operator === '=' || operator === 'in');
  return one === undefined ? undefined : among(`label ${one.key}`, one.values);
}

/** A value that the scalar at a path must have, or must not have. */
export interface FieldTerm {
  readonly path: readonly string[];
  readonly equals: boolean;
  readonly value: string;
}

const termsAre = '; each of its terms is path=value or path!=value, as in spec.unschedulable=true';

/** Throws 400. */
export const parseFieldTerms = (text: string): readonly FieldTerm[] =>
  parseFieldSelector(text, termsAre).map((term) => ({ ...term, path: parseFieldPath(term.path) }));

/** A field that is missing is the empty text, unless Kubernetes has a default for it. */
export function fieldFilter<F>(
  { path, equals, value }: FieldTerm,
  definition: Pick<ResourceDefinition<F>, 'fieldLabels' | 'fieldLabel'>,
): ObjectFilter<F> {
  const key = `field ${JSON.stringify([path, equals, value])}`;
  const label = definition.fieldLabels.find((one) => isDeepStrictEqual(parseFieldPath(one), path));
  if (label !== undefined) return shared(key, (object) => (definition.fieldLabel(object, label) === value) === equals);
  const field = scalarAt(path);
  return lookUp(key, (object) => {
    const found = field(object) ?? '';
    return ((typeof found === 'string' ? found : String(found)) === value) === equals;
  });
}
