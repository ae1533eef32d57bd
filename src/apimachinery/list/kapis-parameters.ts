/** The parameters of /kapis, for each verb: their schemas describe and parse them. */
import {
  decoded,
  flagParameter,
  integerParameter,
  queryParameters,
  type Shape,
} from '../../http/request/parameters.ts';
import type { ParameterDescription } from '../../http/route.ts';
import { described, oneOf, text, withoutDefault, type Schema } from '../../http/schema.ts';
import { copied } from '../../runtime/bounded-cache.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { commonShape, limitParameter } from '../common-parameters.ts';
import { listedPathPattern, pathPattern } from './field-path.ts';
import {
  aliasContains,
  annotationFilters,
  labelFilters,
  nameContains,
  nameIsOneOf,
  ownedBy,
  parseFieldTerms,
  propertyIs,
  shared,
  type ObjectFilter,
} from './filters.ts';
import { optionsShape } from './list-options.ts';
import { maxPaths, parseFields } from './projection.ts';
import { parseSortBy } from './sorting.ts';

/** Parses a copy of the text, because the result may be cached and a slice would keep the whole URL in memory. */
export const parsed = <T>(parse: (given: string) => T, schema: Schema<string> = text) =>
  schema.transform((given) => parse(copied(given)));

const unset = flagParameter.default(false);

const pageShape = {
  page: described('From 1', integerParameter({ min: 1 }, 'a whole number from 1').default(1)),
  limit: described('Items of a page; -1 for all', limitParameter),
  sortBy: described(
    'name, createTime (also creationTimestamp), or any path, such as .status.nodeInfo.kubeletVersion',
    parsed(
      parseSortBy,
      text
        .meta({ pattern: String.raw`^(?:name|createTime|creationTimestamp|\.${pathPattern})$` })
        .default('createTime'),
    ),
  ),
  ascending: described('Oldest, or least, first', unset),
};

const filterShape = {
  name: described('The name contains this', parsed(nameContains).optional()),
  names: described('The name is one of this comma list', parsed(nameIsOneOf).optional()),
  uid: described('The uid is this', parsed(propertyIs('uid')).optional()),
  namespace: described('The namespace is this', parsed(propertyIs('namespace')).optional()),
  ownerReference: described('An owner has this uid', parsed(ownedBy('uid')).optional()),
  ownerKind: described('An owner is of this kind', parsed(ownedBy('kind')).optional()),
  label: described('The same as labelSelector', parsed(labelFilters).optional()),
  annotation: described('A selector over the annotations', parsed(annotationFilters).optional()),
  alias: described(
    'The annotation platform.io/alias-name contains this, in whatever case',
    parsed(aliasContains).optional(),
  ),
};

export const labelSelector = described(
  'Kubernetes label selector of at most 64 requirements, such as a=b,c in (d,e),!f',
  parsed(labelFilters).optional(),
);

const shownShape = {
  managedFields: described('With metadata.managedFields', unset),
  fields: described(
    `Only these of at most ${maxPaths} paths, comma-separated, and what names the object`,
    parsed(
      parseFields,
      text.meta({
        pattern: String.raw`^\.?${listedPathPattern}(?:,\.?${listedPathPattern}){0,${maxPaths - 1}}$`,
      }),
    ).optional(),
  ),
};

const optionShape = optionsShape(
  flagParameter.optional(),
  unset,
  integerParameter({ min: 0 }, 'a whole number from 0').optional(),
);

const selectorShape = {
  labelSelector,
  fieldSelector: described(
    'path=value and path!=value, over any path, comma-separated; at most 32 of them',
    parsed(parseFieldTerms).optional(),
  ),
};

const objectShape = { ...shownShape, ...commonShape };

/** Without the filters that kube-apiserver does not have. */
export const passableShape = { ...selectorShape, ...objectShape, ...optionShape };

/** Parameters of a get of an object that cannot be watched. */
export const getParameters = queryParameters(objectShape);
/** Parameters of a get. */
export const kapisObjectParameters = queryParameters({ ...objectShape, watch: optionShape.watch });

type Definition<F> = Pick<ResourceDefinition<F>, 'statuses' | 'statusOf' | 'filters' | 'selectedBy'>;

function statusParameter<F>(definition: Definition<F>): Shape[string] {
  const { statuses } = definition;
  const find = (given: string): string | undefined =>
    statuses.find((status) => status.toLowerCase() === given.toLowerCase());
  const filters = (status: string): readonly ObjectFilter<F>[] => [
    shared(`status=${status}`, (object) => {
      const found = definition.statusOf(object);
      return typeof found === 'string' ? found === status : found.includes(status);
    }),
  ];
  return decoded(oneOf(...statuses), `one of ${statuses.join(', ')}`, find)
    .transform(filters)
    .optional();
}

/** The parameters that only objects of this kind have, and that are filters. */
function ownFilters<F>(definition: Definition<F>): Shape {
  const own = Object.entries(definition.filters).map(([name, filter]) => {
    const filters = (given: string): readonly ObjectFilter<F>[] => [
      shared(`${name}=${given}`, (object) => filter.matches(object, given)),
    ];
    return [name, described(filter.description, parsed(filters).optional())] as const;
  });
  const { statuses } = definition;
  const status =
    statuses.length === 0 ? {} : { status: described('The state of the object', statusParameter(definition)) };
  return { ...status, ...Object.fromEntries(own) };
}

const hints = { continue: '/kapis has pages (page, limit); continue belongs to /apis' };
const watchHints = {
  ...hints,
  ...Object.fromEntries(Object.keys(pageShape).map((name) => [name, 'a watch has no pages and no order'])),
};

/** The parameters of lists and watches, with these between them. */
export function parametersWith(own: Shape) {
  const shape = { ...filterShape, ...own, ...passableShape };
  return { list: queryParameters({ ...pageShape, ...shape }, hints), watch: queryParameters(shape, watchHints) };
}

type Parameters = ReturnType<typeof parametersWith>;

/** The parameters of lists and watches of a kind. */
export interface KindParameters extends Parameters {
  /** Names of those whose values are filters. */
  readonly filters: readonly string[];
}

const generalFilters = [...Object.keys(filterShape), 'labelSelector'];
/** Most resources of a cluster have no parameters of their own. */
let general: KindParameters | undefined;

export function parametersOf<F>(definition: Definition<F>): KindParameters {
  const own = ownFilters(definition);
  // What selects is found while the request is authorized, for it needs rights (resources/selected-by.ts).
  const selecting = Object.entries(definition.selectedBy ?? {}).map(
    ([name, { description }]) => [name, described(description, text.optional())] as const,
  );
  const filters = [...Object.keys(own), ...generalFilters];
  const make = (): KindParameters => ({ ...parametersWith({ ...own, ...Object.fromEntries(selecting) }), filters });
  return filters.length + selecting.length > generalFilters.length ? make() : (general ??= make());
}

/** Of an object that may be watched by whatever a list is, given those of its watch. */
export const objectDescriptions = (watch: readonly ParameterDescription[]): readonly ParameterDescription[] =>
  watch.map((one) =>
    Object.hasOwn(objectShape, one.name) || one.name === 'watch'
      ? one
      : { ...one, description: `${one.description}; only with watch=true`, schema: withoutDefault(one.schema) },
  );
