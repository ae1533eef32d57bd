/**
 * Parameters of /apis, parsed as Kubernetes does: any text but "false" and "0" is true, and a negative number counts as
 * unset.
 */
import { lenientParameters } from '../../http/request/parameters.ts';
import { described, text } from '../../http/schema.ts';
import { badRequest } from '../../runtime/errors.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { commonShape } from '../common-parameters.ts';
import { parseFieldPath } from './field-path.ts';
import { fieldFilter, inIndex, sharedFilter, type ObjectFilter } from './filters.ts';
import { optionsShape } from './list-options.ts';
import { labelSelector, parsed } from './kapis-parameters.ts';
import { parseFieldSelector } from './selectors.ts';

/** Parses a flag like Convert_Slice_string_To_bool of k8s.io/apimachinery. */
const readFlag = (given: string): boolean => given.toLowerCase() !== 'false' && given !== '0';
const flag = text.meta({ type: 'boolean' }).transform(readFlag).optional();
const unset = text.meta({ type: 'boolean', default: false }).transform(readFlag).optional();

const maxInt64 = 2n ** 63n - 1n;

const int64 = (name: string) =>
  text
    .meta({ type: 'integer', minimum: 0 })
    .transform((given) => {
      const value = /^[+-]?\d{1,19}$/.test(given) ? BigInt(given.replace('+', '')) : undefined;
      if (value === undefined || value > maxInt64 || value < -maxInt64 - 1n)
        throw badRequest(`${name}: ${JSON.stringify(given)} is not a 64-bit integer`);
      return Number(value);
    })
    .optional();

const outputShape = {
  // http/response/pretty.ts evaluates this parameter together with User-Agent.
  pretty: described('Return indented JSON', text.meta({ type: 'boolean', default: false }).optional()),
  timeout: commonShape.timeout,
};

/** Parameters of a list or watch request. */
export const apisCollectionParameters = lenientParameters({
  labelSelector,
  fieldSelector: described('Kubernetes field selector of at most 32 terms', parsed(parseFieldSelector).optional()),
  limit: described('Maximum number of items per chunk', int64('limit')),
  continue: described('metadata.continue of the previous chunk', text.optional()),
  ...optionsShape(flag, unset, int64('timeoutSeconds')),
  ...outputShape,
});

/** Parameters of a get request. */
export const apisObjectParameters = lenientParameters({
  resourceVersion: described('Oldest resourceVersion that the response may have', text.optional()),
  ...outputShape,
});

type Selectors = Pick<ReturnType<typeof apisCollectionParameters.parse>, 'labelSelector' | 'fieldSelector'>;

/**
 * Returns the filters of the selectors. The field selector can use only the resource's field labels. `name` is the
 * single object that the path names, or ''. Throws 400.
 */
export function selectorsOf<F>(
  { labelSelector: labels = [], fieldSelector: terms = [] }: Selectors,
  definition: ResourceDefinition<F>,
  name: string,
): readonly ObjectFilter<F>[] {
  const unsupported = terms.find(({ path }) => !definition.fieldLabels.includes(path));
  if (unsupported !== undefined) throw badRequest(`field label not supported: ${unsupported.path}`);
  const filters: ObjectFilter<F>[] = [
    ...labels,
    ...terms.map((term) => fieldFilter({ ...term, path: parseFieldPath(term.path) }, definition)),
  ];
  if (name === '') return filters;
  const named = terms.find(({ path, equals }) => path === 'metadata.name' && equals);
  if (terms.length > 0 && named?.value !== name)
    throw badRequest("fieldSelector metadata.name doesn't match requested name");
  return [...filters, sharedFilter(`object=${name}`, (object) => object.name === name, inIndex('name', [name]))];
}
