/** Parameters of /kapis for each verb. The schema of a parameter both describes the parameter and parses its value. */
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
  aliasAnnotations,
  aliasContains,
  annotationFilters,
  labelFilters,
  nameContains,
  nameIsOneOf,
  ownedBy,
  parseFieldTerms,
  propertyIs,
  sharedFilter,
  type ObjectFilter,
} from './filters.ts';
import { optionsShape, requestedVersion } from './list-options.ts';
import { maxPaths, parseFields } from './projection.ts';
import { parseSortBy } from './sorting.ts';

/** Parses a copy of the text: the result may be cached, and a slice would keep the whole URL in memory. */
export const parsed = <T>(parse: (given: string) => T, schema: Schema<string> = text) =>
  schema.transform((given) => parse(copied(given)));

const unset = flagParameter.default(false);

const pageShape = {
  page: described('Page number, starting at 1', integerParameter({ min: 1 }, 'an integer of at least 1').default(1)),
  limit: described('Maximum number of items per page; -1 for all', limitParameter),
  sortBy: described(
    'Sort key: name, createTime (also creationTimestamp), or any path, such as .status.nodeInfo.kubeletVersion',
    parsed(
      parseSortBy,
      text
        .meta({ pattern: String.raw`^(?:name|createTime|creationTimestamp|\.${pathPattern})$` })
        .default('createTime'),
    ),
  ),
  ascending: described('Sort in ascending order, oldest first', unset),
};

const filterShape = {
  name: described('Objects whose name contains this text', parsed(nameContains).optional()),
  names: described('Objects whose name is in this comma-separated list', parsed(nameIsOneOf).optional()),
  uid: described('Objects with this uid', parsed(propertyIs('uid')).optional()),
  namespace: described('Objects in this namespace', parsed(propertyIs('namespace')).optional()),
  ownerReference: described('Objects that have an owner with this uid', parsed(ownedBy('uid')).optional()),
  ownerKind: described('Objects that have an owner of this kind', parsed(ownedBy('kind')).optional()),
  label: described('Same as labelSelector', parsed(labelFilters).optional()),
  annotation: described(
    'Selector over annotations, in the syntax of labelSelector',
    parsed(annotationFilters).optional(),
  ),
  alias: described(
    `Objects whose annotation ${aliasAnnotations.join(' or ')} contains this text, ignoring case`,
    parsed(aliasContains).optional(),
  ),
};

export const labelSelector = described(
  'Kubernetes label selector of at most 64 requirements, such as a=b,c in (d,e),!f',
  parsed(labelFilters).optional(),
);

const shownShape = {
  managedFields: described('Include metadata.managedFields', unset),
  fields: described(
    `Return only the fields at these comma-separated paths (at most ${maxPaths}), plus the fields that identify the object`,
    parsed(
      parseFields,
      text.meta({
        pattern: String.raw`^\.?${listedPathPattern}(?:,\.?${listedPathPattern}){0,${maxPaths - 1}}$`,
      }),
    ).optional(),
  ),
};

const options = optionsShape(
  flagParameter.optional(),
  unset,
  integerParameter({ min: 0 }, 'an integer of at least 0').optional(),
);

/** Validates the version with the other parameters, so that the response lists all problems. */
function checkedVersion(resourceVersion: string): string {
  requestedVersion({ resourceVersion });
  return resourceVersion;
}

const optionShape = {
  ...options,
  resourceVersion: described(options.resourceVersion.description ?? '', parsed(checkedVersion).optional()),
};

const selectorShape = {
  labelSelector,
  fieldSelector: described(
    'Comma-separated terms path=value or path!=value with any path; at most 32',
    parsed(parseFieldTerms).optional(),
  ),
};

const objectShape = { ...shownShape, ...commonShape };

/** Parameters for which kube-apiserver has an equivalent. */
export const forwardableShape = { ...selectorShape, ...objectShape, ...optionShape };

/** Parameters of a get request for an object that cannot be watched. */
export const getParameters = queryParameters(objectShape);
/** Parameters of a get request for an object that can be watched. */
export const kapisObjectParameters = queryParameters({ ...objectShape, watch: optionShape.watch });

type Definition<F> = Pick<ResourceDefinition<F>, 'statuses' | 'statusOf' | 'filters' | 'selectedBy'>;

function statusParameter<F>(definition: Definition<F>): Shape[string] {
  const { statuses } = definition;
  const find = (given: string): string | undefined =>
    statuses.find((status) => status.toLowerCase() === given.toLowerCase());
  const filters = (status: string): readonly ObjectFilter<F>[] => [
    sharedFilter(`status=${status}`, (object) => {
      const found = definition.statusOf(object);
      return typeof found === 'string' ? found === status : found.includes(status);
    }),
  ];
  return decoded(oneOf(...statuses), `one of ${statuses.join(', ')}`, find)
    .transform(filters)
    .optional();
}

/** Returns the filter parameters that only this kind has. */
function ownFilters<F>(definition: Definition<F>): Shape {
  const own = Object.entries(definition.filters).map(([name, filter]) => {
    const filters = (given: string): readonly ObjectFilter<F>[] => [
      sharedFilter(`${name}=${given}`, (object) => filter.matches(object, given)),
    ];
    return [name, described(filter.description, parsed(filters).optional())] as const;
  });
  const { statuses } = definition;
  const status =
    statuses.length === 0 ? {} : { status: described('Objects in this state', statusParameter(definition)) };
  return { ...status, ...Object.fromEntries(own) };
}

const hints = { continue: 'not supported on /kapis; use page and limit, or use /apis' };
const watchHints = {
  ...hints,
  ...Object.fromEntries(Object.keys(pageShape).map((name) => [name, 'not supported with watch=true'])),
};

/** Returns the parameters of lists and watches, including `own`. */
export function parametersWith(own: Shape) {
  const shape = { ...filterShape, ...own, ...forwardableShape };
  return { list: queryParameters({ ...pageShape, ...shape }, hints), watch: queryParameters(shape, watchHints) };
}

type Parameters = ReturnType<typeof parametersWith>;

/** Parameters of lists and watches of a kind. */
export interface KindParameters extends Parameters {
  /** Names of the parameters whose values are filters. */
  readonly filters: readonly string[];
}

const generalFilters = [...Object.keys(filterShape), 'labelSelector'];
/**
 * Shared parameters of all resources without specific parameters. Most resources of a cluster have no specific
 * parameters.
 */
let general: KindParameters | undefined;

export function parametersOf<F>(definition: Definition<F>): KindParameters {
  const own = ownFilters(definition);
  // The objects named by these parameters are resolved during authorization, because reading them requires rights
  // (resources/selected-by.ts).
  const selecting = Object.entries(definition.selectedBy ?? {}).map(
    ([name, { description }]) => [name, described(description, text.optional())] as const,
  );
  const filters = [...Object.keys(own), ...generalFilters];
  const make = (): KindParameters => ({ ...parametersWith({ ...own, ...Object.fromEntries(selecting) }), filters });
  return filters.length + selecting.length > generalFilters.length ? make() : (general ??= make());
}

/**
 * Returns the parameters of a get request for an object that can be watched, given the parameters of its watch. Most of
 * these parameters apply only with watch=true.
 */
export const objectDescriptions = (watch: readonly ParameterDescription[]): readonly ParameterDescription[] =>
  watch.map((one) =>
    Object.hasOwn(objectShape, one.name) || one.name === 'watch'
      ? one
      : { ...one, description: `${one.description}; only with watch=true`, schema: withoutDefault(one.schema) },
  );
