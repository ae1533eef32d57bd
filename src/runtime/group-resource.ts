/** Plural name of a resource and its group ('' for the core group), as in schema.GroupResource of Kubernetes. */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

/** Returns `{plural}.{group}`, or only `{plural}` in the core group, for messages and metrics. */
export const qualifiedName = ({ group, resource }: GroupResource): string =>
  group === '' ? resource : `${resource}.${group}`;
