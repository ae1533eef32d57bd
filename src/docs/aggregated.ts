/**
 * `/openapi/v2` and `/openapi/v3` of the aggregated API (k8s.io/kube-openapi pkg/handler and handler3): kube-apiserver
 * merges `v2` and proxies `v3`; kubectl explain reads both.
 */
import { createHash } from 'node:crypto';
import { StatusError } from '../runtime/errors.ts';
import { isKnown, negotiate } from '../http/request/negotiate.ts';
import { authenticated } from '../http/access.ts';
import { defineRoute, type RouteRequest } from '../http/define-route.ts';
import type { Route } from '../http/route.ts';
import { write } from '../http/response/write.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import type { Logger } from '../runtime/logger.ts';
import { withoutSpan } from '../runtime/tracing.ts';
import { openapi3, swagger2 } from './openapi/group-documents.ts';
import {
  kindSchemas,
  ownSchemas,
  unknownSchemas,
  type DescribedKind,
  type DescribedResource,
  type ClusterSchemas,
} from './openapi/cluster-schemas.ts';

export interface OpenapiOptions {
  readonly client: Pick<KubeClient, 'json'>;
  readonly log: Logger;
  /** Version of this server. */
  readonly version: string;
  /** Routes of the aggregated API to describe. */
  readonly routes: readonly Route[];
  readonly resources: readonly DescribedResource[];
  /** Types of responses that are not cluster objects; kubectl explain shows them. */
  readonly kinds?: readonly DescribedKind[];
}

interface Document {
  readonly body: Buffer;
  /** SHA-512 in upper-case hexadecimal. */
  readonly hash: string;
}

interface Documents {
  readonly v2: Document;
  /** Documents by path of the group and version. */
  readonly v3: ReadonlyMap<string, Document>;
  readonly root: Document;
}

/** Milliseconds between reads of the cluster's schemas, which change when the cluster is upgraded. */
const refreshInterval = 10 * 60_000;
const retryInterval = 10_000;
const coreDocument = '/openapi/v3/api/v1';

const takesJson = (header: string | undefined): string => negotiate(header, ['application/json'], (type) => type);

function documentOf(value: object): Document {
  const body = Buffer.from(JSON.stringify(value));
  return { body, hash: createHash('sha512').update(body).digest('hex').toUpperCase() };
}

const groupPathOf = (one: { readonly group: string; readonly version: string }): string =>
  `apis/${one.group}/${one.version}`;

/** Builds the documents from the cluster's schemas, and rebuilds them when the schemas change. */
class OpenapiDocuments {
  /** Paths of groups with versions, each of which has its own document. */
  readonly groupPaths: readonly string[];
  readonly #options: OpenapiOptions;
  readonly #kinds: readonly DescribedKind[];
  #documents: Documents | undefined;
  #fetchAfter = 0;
  #fetching: Promise<Documents> | undefined;

  constructor(options: OpenapiOptions) {
    this.#options = options;
    this.#kinds = options.kinds ?? [];
    this.groupPaths = [...new Set([...options.resources, ...this.#kinds].map(groupPathOf))];
  }

  /** Returns existing documents at once, and refreshes them in the background. */
  async current(): Promise<Documents> {
    if (Date.now() >= this.#fetchAfter)
      this.#fetching ??= withoutSpan(() => this.#fetch()).then((found) => {
        this.#documents = found;
        this.#fetching = undefined;
        return found;
      });
    return this.#documents ?? (await (this.#fetching as Promise<Documents>));
  }

  async #fetch(): Promise<Documents> {
    const { client, log, resources } = this.#options;
    const schemasOf = (cluster: ClusterSchemas): ClusterSchemas =>
      Object.assign({}, ...resources.map((one) => ownSchemas(cluster, one) ?? unknownSchemas(one))) as ClusterSchemas;
    try {
      const core = await client.json<{ components?: { schemas?: ClusterSchemas } }>(coreDocument, { timeout: 5_000 });
      this.#fetchAfter = Date.now() + refreshInterval;
      return this.#build(schemasOf(core.components?.schemas ?? {}));
    } catch (error) {
      log.warn('could not read the schemas of the cluster', { error });
      this.#fetchAfter = Date.now() + retryInterval;
      return this.#documents ?? this.#build(schemasOf({}));
    }
  }

  #build(schemas: ClusterSchemas): Documents {
    const { version, resources, routes } = this.#options;
    const kinds = this.#kinds;
    const description = { title: 'platform-apiserver', version, resources, schemas, kinds };
    const within = (groupPath: string): Route[] =>
      routes.filter(({ path }) => path === `/${groupPath}` || path.startsWith(`/${groupPath}/`));
    const v3 = new Map(
      this.groupPaths.map((path) => {
        const own = {
          ...(resources.some((one) => path === groupPathOf(one)) ? schemas : {}),
          ...kindSchemas(kinds.filter((one) => path === groupPathOf(one))),
        };
        return [path, documentOf(openapi3({ ...description, routes: within(path), schemas: own }))];
      }),
    );
    const paths = Object.fromEntries(
      [...v3].map(([path, { hash }]) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }]),
    );
    const all = { ...schemas, ...kindSchemas(kinds) };
    const v2 = documentOf(swagger2({ ...description, schemas: all, routes: this.groupPaths.flatMap(within) }));
    return { v2, v3, root: documentOf({ paths }) };
  }
}

export function openapiRoutes(options: OpenapiOptions): Route[] {
  const documents = new OpenapiDocuments(options);
  /** A 406 response has no body; clients then request JSON. */
  const serve =
    (choose: (documents: Documents) => Document, hashed: boolean) =>
    async ({
      req,
      res,
      context: { query },
    }: Pick<RouteRequest<string, typeof authenticated>, 'req' | 'res' | 'context'>) => {
      try {
        takesJson(req.headers.accept);
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
        res.writeHead(406, { Vary: 'Accept' }).end();
        return;
      }
      const { body, hash } = choose(await documents.current());
      const etag = `"${hash}"`;
      // A different hash belongs to another replica or an older document. kube-apiserver would turn a redirect to the
      // current document into a 502.
      const isImmutable = hashed && query.get('hash') === hash;
      const headers = {
        ETag: etag,
        Vary: 'Accept',
        ...(isImmutable
          ? {
              'Cache-Control': 'public, immutable',
              Expires: new Date(Date.now() + 365 * 24 * 3600 * 1000).toUTCString(),
            }
          : {}),
      };
      if (isKnown(req.headers['if-none-match'], etag)) res.writeHead(304, headers).end();
      else await write(req, res, { contentType: 'application/json', body: [body], headers });
    };

  const route = (path: string, summary: string, choose: (documents: Documents) => Document, hashed = false): Route =>
    defineRoute({
      method: 'get',
      path,
      summary,
      description: 'Available to all authenticated callers.',
      access: authenticated,
      responses: {},
      handler: serve(choose, hashed),
    });
  return [
    route('/openapi/v2', 'Get the description in Swagger 2.0', ({ v2 }) => v2),
    route('/openapi/v3', 'List the descriptions in OpenAPI 3.0', ({ root }) => root),
    ...documents.groupPaths.map((path) =>
      route(`/openapi/v3/${path}`, 'Get the description in OpenAPI 3.0', ({ v3 }) => v3.get(path) as Document, true),
    ),
  ];
}
