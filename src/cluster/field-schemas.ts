/** The fields of a kind, from the OpenAPI v3 document of its API version that kube-apiserver serves. */
import { BoundedCache, InProgress } from '../runtime/bounded-cache.ts';
import type { Logger } from '../runtime/logger.ts';
import { readBody } from '../runtime/promises.ts';
import type { KubeClient } from './client/client.ts';
import { KubeError } from './client/kube-error.ts';

/** A value in an object of a kind. A value without members, additional members and elements is a scalar. */
export interface FieldSchema {
  readonly members: ReadonlyMap<string, FieldSchema>;
  /** Schema of all other members. */
  readonly additional: FieldSchema | undefined;
  /** Schema of the elements of an array. */
  readonly element: FieldSchema | undefined;
  /** True if the schema does not limit the members. */
  readonly isOpen: boolean;
}

interface DescribedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Version of the kind's CustomResourceDefinition; '' if there is none. */
  readonly revision: string;
}

/** The part of an OpenAPI v3 schema that describes fields. */
interface OpenAPISchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, OpenAPISchema>>;
  readonly additionalProperties?: OpenAPISchema | boolean;
  readonly items?: OpenAPISchema;
  readonly allOf?: readonly OpenAPISchema[];
  readonly oneOf?: readonly unknown[];
  readonly anyOf?: readonly unknown[];
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-group-version-kind'?: readonly Omit<DescribedKind, 'revision'>[];
}

type OpenAPISchemas = Readonly<Record<string, OpenAPISchema>>;

interface Known {
  /** Fields, undefined if the document cannot be read, or does not describe the kind. */
  readonly schema: FieldSchema | undefined;
  readonly bytes: number;
}

const maxDocument = 2 * 1024 * 1024;
const fetchTimeout = 5_000;
/** Maximum milliseconds that a request waits for a schema. */
const maxWait = 1_000;
const maxFetches = 4;
/**
 * Milliseconds for which a schema is cached. kube-apiserver describes a changed CustomResourceDefinition with a delay.
 */
const life = { builtIn: 10 * 60_000, custom: 60_000, failed: 10_000 };
const nodeBytes = 200;

const refPrefix = '#/components/schemas/';

/** Returns true if a schema states nothing about the members of its value. */
const isUnlimited = (schema: OpenAPISchema): boolean =>
  schema['x-kubernetes-preserve-unknown-fields'] === true ||
  schema['x-kubernetes-embedded-resource'] === true ||
  schema.additionalProperties === true ||
  (schema.properties === undefined &&
    schema.additionalProperties === undefined &&
    schema.allOf === undefined &&
    (schema.type === 'object' ||
      (schema.type === undefined &&
        (schema.oneOf ?? schema.anyOf) === undefined &&
        schema['x-kubernetes-int-or-string'] !== true)));

/**
 * Returns the reference of a schema. kube-apiserver writes a reference with a default as an `allOf` with one element.
 */
const referenceIn = ({ $ref, properties, allOf = [] }: OpenAPISchema): string | undefined =>
  $ref ?? (properties === undefined && allOf.length === 1 ? allOf[0]?.$ref : undefined);

/** Returns the fields of a schema, and the number of values in it. A schema may refer to itself. */
export function fieldsOf(schemas: OpenAPISchemas, root: OpenAPISchema): { fields: FieldSchema; count: number } {
  const byName = new Map<string, FieldSchema>();
  let count = 0;

  function convert(schema: OpenAPISchema): FieldSchema {
    const name = referenceIn(schema)?.slice(refPrefix.length);
    if (name === undefined) return fill(schema, emptyFields());
    let known = byName.get(name);
    if (known === undefined) {
      const own = emptyFields();
      byName.set(name, (known = own));
      fill(schemas[name] ?? {}, own);
    }
    return known;
  }

  function fill(schema: OpenAPISchema, own: ReturnType<typeof emptyFields>): FieldSchema {
    count += 1;
    const { properties = {}, additionalProperties, items, allOf = [] } = schema;
    own.isOpen ||= isUnlimited(schema);
    for (const [name, member] of Object.entries(properties)) own.members.set(name, convert(member));
    if (typeof additionalProperties === 'object') own.additional = convert(additionalProperties);
    if (items !== undefined) own.element = convert(items);
    for (const part of allOf.map(convert)) {
      own.isOpen ||= part.isOpen;
      for (const [name, member] of part.members) own.members.set(name, member);
      own.additional ??= part.additional;
      own.element ??= part.element;
    }
    return own;
  }

  return { fields: convert(root), count };
}

const emptyFields = () => ({
  members: new Map<string, FieldSchema>(),
  additional: undefined as FieldSchema | undefined,
  element: undefined as FieldSchema | undefined,
  isOpen: false,
});

const documentPath = ({ group, version }: DescribedKind): string =>
  group === '' ? `/openapi/v3/api/${version}` : `/openapi/v3/apis/${group}/${version}`;

/** Reads schemas on first use. */
export class FieldSchemas {
  readonly #client: Pick<KubeClient, 'stream'>;
  readonly #known = new BoundedCache<Known>({
    name: 'field_schemas',
    maxEntries: 500,
    maxBytes: 16 * 1024 * 1024,
    ttl: life.builtIn,
    sizeOf: ({ bytes }) => bytes,
  });
  readonly #fetching = new InProgress<Promise<Known>>('field_schemas_in_progress');

  constructor(client: Pick<KubeClient, 'stream'>) {
    this.#client = client;
  }

  /** Returns the schema of a kind, at once if it is cached; undefined if it is not available within a second. */
  find(kind: DescribedKind, log: Logger): FieldSchema | undefined | Promise<FieldSchema | undefined> {
    const key = JSON.stringify([kind.group, kind.version, kind.kind, kind.revision]);
    const known = this.#known.get(key);
    if (known !== undefined) return known.schema;
    let fetching = this.#fetching.get(key);
    if (fetching === undefined) {
      if (this.#fetching.entries >= maxFetches) return undefined;
      fetching = this.#read(key, kind, log).finally(() => this.#fetching.delete(key));
      this.#fetching.set(key, fetching);
    }
    return this.#wait(fetching);
  }

  async #wait(fetching: Promise<Known>): Promise<FieldSchema | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, maxWait, undefined);
    });
    const known = await Promise.race([fetching, late]);
    clearTimeout(timer);
    return known?.schema;
  }

  /** Reads the schema of a kind. Never throws. */
  async #read(key: string, kind: DescribedKind, log: Logger): Promise<Known> {
    let known: Known = { schema: undefined, bytes: 0 };
    let ttl = kind.revision === '' ? life.builtIn : life.custom;
    try {
      known = await this.#fetch(kind);
    } catch (error) {
      ttl = life.failed;
      log.warn('could not read the schema of a resource', { path: documentPath(kind), error });
    }
    this.#known.set(key, known, ttl);
    return known;
  }

  async #fetch(described: DescribedKind): Promise<Known> {
    const { group, version, kind } = described;
    const options = { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(fetchTimeout) };
    const { status, body } = await this.#client.stream(documentPath(described), options);
    const text = (await readBody(body, maxDocument)).toString('utf8');
    if (status === 404) return { schema: undefined, bytes: 0 };
    if (status !== 200) throw KubeError.from(status, text);
    const { components } = JSON.parse(text) as { readonly components?: { readonly schemas?: OpenAPISchemas } };
    const schemas = components?.schemas ?? {};
    const root = Object.values(schemas).find((schema) =>
      schema['x-kubernetes-group-version-kind']?.some(
        (one) => one.group === group && one.version === version && one.kind === kind,
      ),
    );
    if (root === undefined) return { schema: undefined, bytes: 0 };
    const { fields, count } = fieldsOf(schemas, root);
    return { schema: fields, bytes: count * nodeBytes };
  }
}
