/** Names of the resources of the cluster: as identifiers, in suggestions and in discovery on /kapis. */
import { nearest } from '../../config/error-map.ts';
import { qualifiedName, type GroupResource } from '../../runtime/group-resource.ts';
import type { Discovery } from '../discovery.ts';
import type { ApiResource } from './resource.ts';

type ServedResources = Pick<Discovery, 'resolve' | 'resources'>;

/** Returns `{plural}.{group}`. In the core group, whose name is '', the dot remains: `secrets.` is unambiguous. */
export const idOf = ({ group, resource }: GroupResource): string => `${resource}.${group}`;

/**
 * Returns the name to suggest for a name that does not resolve: of the resource with this kind, singular name or short
 * name in any case, or else the most similar plural name. The name has a group if it would be ambiguous without one, or
 * if `name` has one. Returns undefined if no name is similar.
 */
export function suggestionFor(name: string, discovery: ServedResources): string | undefined {
  const wanted = name.toLowerCase();
  const suggestion = discovery.resources.find(({ resource, kind, singular, shortNames }) =>
    [resource, kind.toLowerCase(), singular, ...shortNames].includes(wanted),
  );
  if (suggestion === undefined) {
    const isQualified = name.includes('.');
    return nearest(wanted, [
      ...new Set(discovery.resources.map((one) => (isQualified ? qualifiedName(one) : one.resource))),
    ]);
  }
  return discovery.resolve(suggestion.resource) === suggestion ? suggestion.resource : qualifiedName(suggestion);
}

/** Returns the resources that callers can read, each in its preferred version, for discovery on /kapis. */
export function apiResourcesOf(discovery: ServedResources): ApiResource[] {
  const versions = new Set<string>();
  return discovery.resources.flatMap((discovered) => {
    const { resource, singular, namespaced, kind, shortNames, verbs } = discovered;
    const readable = ['get', 'list', 'watch'].filter((verb) => verbs.includes(verb));
    // The preferred version comes first. Other versions are not listed.
    if (readable.length === 0 || versions.has(idOf(discovered))) return [];
    versions.add(idOf(discovered));
    const isFirst = discovery.resolve(resource) === discovered;
    return {
      // Only the name with the group resolves to this resource: `events` is the first group, `events.` the core group.
      name: isFirst ? resource : idOf(discovered),
      singularName: singular,
      namespaced,
      kind,
      verbs: readable,
      ...(shortNames.length === 0 || !isFirst ? {} : { shortNames }),
    };
  });
}
