/**
 * Definitions of resources from discovery, with the specific fields of kinds that have a file in src/resources/kinds.
 */
import { resourcesGroup, resourcesVersion } from '../../config/names.ts';
import type { DiscoveredResource } from '../discovery.ts';
import type { Kind, ResourceDefinition } from './resource.ts';

/** API group in which all resources of the cluster can be read. */
export const readingGroup = { group: resourcesGroup, version: resourcesVersion };

const plain: Omit<Kind<unknown>, 'group' | 'resource'> = {
  fields: () => undefined,
  statuses: [],
  statusOf: () => '',
  filters: {},
};

/**
 * Tables and field labels are empty. Both are used only by /apis, which serves only resources with their own
 * definition.
 */
export function genericDefinition(
  { group, version, resource, kind, singular, shortNames, namespaced }: DiscoveredResource,
  kinds: readonly Kind<unknown>[],
): ResourceDefinition<unknown> {
  const own = kinds.find((candidate) => candidate.group === group && candidate.resource === resource) ?? plain;
  return {
    kind,
    singular,
    shortNames,
    namespaced,
    underlying: { group, version, resource },
    served: { ...readingGroup, resource },
    fields: (object) => own.fields(object),
    columns: [],
    cells: () => [],
    fieldLabels: [],
    fieldLabel: () => '',
    statuses: own.statuses,
    statusOf: (object) => own.statusOf(object),
    filters: own.filters,
    ...(own.selectedBy === undefined ? {} : { selectedBy: own.selectedBy }),
  };
}
