/** The documents of custom resources, put together of what was written of each definition, which stays as it is while the definition does. */
import { operationsOf, tagOf, type Definition } from './custom-resource.ts';
import { packageOf } from './operations.ts';
import { head31, Writer31 } from './openapi31.ts';
import { headOf, type DocumentHead, type OperationDescription, type TagDescription } from './operation.ts';
import { head20, Writer20 } from './swagger20.ts';
import type { Writer } from './writer.ts';

export type DocumentForm = 'v2' | 'v3';

/** JSON, of an object without its braces. */
interface Fragment {
  readonly paths: Buffer;
  /** Its own. */
  readonly schemas: Buffer;
}

export interface Written {
  readonly group: string;
  readonly operationIds: readonly string[];
  readonly tags: readonly TagDescription[];
  readonly fragments: Readonly<Record<DocumentForm, Fragment>>;
  /** What all have, each by itself. */
  readonly shared: Readonly<Record<DocumentForm, { readonly schemas: object; readonly responses: object }>>;
}

const withoutBraces = (value: object): string => JSON.stringify(value).slice(1, -1);

/** What the documents say of a definition. */
export function write(definition: Definition): Written {
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
): { readonly fragment: Fragment; readonly shared: Written['shared']['v2'] } {
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

interface About {
  /** Of this server. */
  readonly version: string;
  readonly issuer: string;
  /** Bytes. */
  readonly largest: number;
}

/** The document in pieces. What would make it larger than it may be is left out, in the order of names. */
export function documentOf(form: DocumentForm, all: readonly Written[], { version, issuer, largest }: About): Buffer[] {
  let size = 0;
  const within = all.filter(({ fragments }) => {
    const { paths, schemas } = fragments[form];
    return (size += paths.length + schemas.length) <= largest;
  });
  const left = all.length - within.length;
  const description = `The custom resources of the cluster. This server sends the requests to kube-apiserver with the rights of the caller.${left === 0 ? '' : ` ${left} more would make this document too large.`}`;
  const tags = [...new Map(within.flatMap((one) => one.tags).map((tag) => [tag.name, tag])).values()];
  const merge = (what: 'schemas' | 'responses'): object =>
    Object.assign({}, ...within.map(({ shared }) => shared[form][what])) as object;
  const about = headOf({ title: 'Custom resources', description, version, tags });
  const { head, between, end } = frames[form](about, merge('responses'), issuer);
  const shared = Buffer.from(withoutBraces(merge('schemas')));
  return [
    Buffer.from(`${JSON.stringify(head).slice(0, -1)},"paths":{`),
    ...joined(withOwnNames(within, form)),
    Buffer.from(between),
    ...joined([shared, ...within.map(({ fragments }) => fragments[form].schemas)]),
    Buffer.from(end),
  ];
}

/**
 * The paths. The status of a Cron and a CronStatus may be called alike, as the groups a-b and a.b: OpenAPI wants operations to have names of
 * their own.
 */
function withOwnNames(all: readonly Written[], form: DocumentForm): Buffer[] {
  const taken = new Set<string>();
  return all.map(({ operationIds, fragments }) => {
    const alike = operationIds.filter((id) => taken.has(id));
    for (const id of operationIds) taken.add(id);
    const { paths } = fragments[form];
    return alike.length === 0
      ? paths
      : Buffer.from(alike.reduce((text, id) => renamed(text, id, taken), paths.toString()));
  });
}

/** Within a text, such as a description, its quotes would be escaped. */
function renamed(paths: string, id: string, taken: Set<string>): string {
  let number = 2;
  while (taken.has(`${id}_${number}`)) number += 1;
  taken.add(`${id}_${number}`);
  return paths.replace(`"operationId":"${id}"`, `"operationId":"${id}_${number}"`);
}

interface Frame {
  readonly head: object;
  /** Between the paths and the schemas. */
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
