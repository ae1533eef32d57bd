/**
 * Assembles the documents of custom resources from fragments. The fragments of a definition stay valid until the
 * definition changes.
 */
import { operationsOf, tagOf, type Definition } from './custom-resource.ts';
import { packageOf } from './operations.ts';
import { head31, Writer31 } from './openapi31.ts';
import { headOf, type DocumentHead, type OperationDescription, type TagDescription } from './operation.ts';
import { head20, Writer20 } from './swagger20.ts';
import type { Writer } from './writer.ts';

export type DocumentForm = 'v2' | 'v3';

/** JSON of objects, without their braces. */
interface Fragment {
  readonly paths: Buffer;
  /** Schemas whose names start with the reversed name of the group, such as `com.example.apps.`. */
  readonly schemas: Buffer;
}

export interface DefinitionFragments {
  readonly group: string;
  readonly operationIds: readonly string[];
  readonly tags: readonly TagDescription[];
  readonly fragments: Readonly<Record<DocumentForm, Fragment>>;
  /** Schemas and responses that all definitions share, such as Status. */
  readonly shared: Readonly<Record<DocumentForm, { readonly schemas: object; readonly responses: object }>>;
}

const withoutBraces = (value: object): string => JSON.stringify(value).slice(1, -1);

/** Writes the fragments of a definition. */
export function describeDefinition(definition: Definition): DefinitionFragments {
  const { group, versions } = definition.spec;
  const operations = operationsOf(definition);
  const v2 = part(new Writer20(), operations, group);
  const v3 = part(new Writer31(), operations, group);
  const served = versions.filter((one) => one.served);
  return {
    group,
    operationIds: operations.map(({ operationId }) => operationId),
    tags: served.map(({ name }) => ({ name: tagOf(group, name), description: `${group}/${name}` })),
    fragments: { v2: v2.fragment, v3: v3.fragment },
    shared: { v2: v2.shared, v3: v3.shared },
  };
}

function part(
  writer: Writer,
  operations: readonly OperationDescription[],
  group: string,
): { readonly fragment: Fragment; readonly shared: DefinitionFragments['shared']['v2'] } {
  const paths = writer.paths(operations);
  const { schemas, responses } = writer.components;
  const prefix = packageOf(group, '');
  const own = (isOwn: boolean): object =>
    Object.fromEntries(Object.entries(schemas).filter(([name]) => name.startsWith(prefix) === isOwn));
  return {
    fragment: { paths: Buffer.from(withoutBraces(paths)), schemas: Buffer.from(withoutBraces(own(true))) },
    shared: { schemas: own(false), responses },
  };
}

interface DocumentOptions {
  /** Version of this server. */
  readonly version: string;
  readonly issuer: string;
  /** Maximum bytes of paths and schemas. */
  readonly maxBytes: number;
}

/**
 * Returns the document in pieces. Definitions are added in the given order. The first definition that would exceed
 * `maxBytes` and all later definitions are omitted.
 */
export function documentOf(
  form: DocumentForm,
  all: readonly DefinitionFragments[],
  { version, issuer, maxBytes }: DocumentOptions,
): Buffer[] {
  let size = 0;
  const within = all.filter(({ fragments }) => {
    const { paths, schemas } = fragments[form];
    return (size += paths.length + schemas.length) <= maxBytes;
  });
  const omitted = all.length - within.length;
  const description = `The custom resources of the cluster. This server sends the requests to kube-apiserver with the rights of the caller.${omitted === 0 ? '' : ` Omitted because of the size of this document: ${omitted}.`}`;
  const tags = [...new Map(within.flatMap((one) => one.tags).map((tag) => [tag.name, tag])).values()];
  const merge = (what: 'schemas' | 'responses'): object =>
    Object.assign({}, ...within.map(({ shared }) => shared[form][what])) as object;
  const about = headOf({ title: 'Custom resources', description, version, tags });
  const { head, between, end } = frames[form](about, merge('responses'), issuer);
  const shared = Buffer.from(withoutBraces(merge('schemas')));
  return [
    Buffer.from(`${JSON.stringify(head).slice(0, -1)},"paths":{`),
    ...joined(withUniqueIDs(within, form)),
    Buffer.from(between),
    ...joined([shared, ...within.map(({ fragments }) => fragments[form].schemas)]),
    Buffer.from(end),
  ];
}

/**
 * Returns the paths with unique operation IDs, which OpenAPI requires. Names can collide: the status of a Cron and a
 * CronStatus, or the groups a-b and a.b.
 */
function withUniqueIDs(all: readonly DefinitionFragments[], form: DocumentForm): Buffer[] {
  const taken = new Set<string>();
  return all.map(({ operationIds, fragments }) => {
    const duplicates = operationIds.filter((id) => taken.has(id));
    for (const id of operationIds) taken.add(id);
    const { paths } = fragments[form];
    return duplicates.length === 0
      ? paths
      : Buffer.from(duplicates.reduce((text, id) => renamed(text, id, taken), paths.toString()));
  });
}

/** Renames one operation ID. Inside a string, such as a description, the quotes are escaped and do not match. */
function renamed(paths: string, id: string, taken: Set<string>): string {
  let number = 2;
  while (taken.has(`${id}_${number}`)) number += 1;
  taken.add(`${id}_${number}`);
  return paths.replace(`"operationId":"${id}"`, `"operationId":"${id}_${number}"`);
}

interface Frame {
  readonly head: object;
  /** Text between the paths and the schemas. */
  readonly between: string;
  readonly end: string;
}

const frames: Readonly<Record<DocumentForm, (about: DocumentHead, responses: object, issuer: string) => Frame>> = {
  v2: (about, responses, issuer) => ({
    head: head20(about, issuer),
    between: `},"responses":${JSON.stringify(responses)},"definitions":{`,
    end: '}}\n',
  }),
  v3(about, responses, issuer) {
    const { head, securitySchemes } = head31(about, issuer);
    return {
      head,
      between: `},"components":{${withoutBraces({ securitySchemes, responses })},"schemas":{`,
      end: '}}}\n',
    };
  },
};

const comma = Buffer.from(',');

const joined = (fragments: readonly Buffer[]): Buffer[] =>
  fragments.filter(({ length }) => length > 0).flatMap((fragment, at) => (at === 0 ? [fragment] : [comma, fragment]));
