/**
 * /openapi/v2 and /openapi/v3 of the aggregated face, as kube-aggregator and kubectl ask for them
 * (k8s.io/kube-openapi pkg/handler and pkg/handler3).
 */
import type { Response } from 'express';
import { createHash } from 'node:crypto';
import { notAcceptable } from '../errors.ts';
import type { RequestContext, Route } from '../http/route.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Logger } from '../logger.ts';
import { closure, readCoreSchemas, type Schemas } from './cluster-schemas.ts';
import { asSwagger, groupDocument, schemaNamespace, type DescribedResource } from './group-document.ts';

interface Document {
  readonly body: Buffer;
  /** Upper-case hex SHA-512 of the body. */
  readonly hash: string;
}

interface Documents {
  readonly v2: Document;
  readonly v3: Document;
}

const year = 31_536_000_000;
/** A cluster that was upgraded has other schemas; one that could not be asked is asked again soon. */
const goodFor = 600_000;
const retryAfter = 10_000;

const documentOf = (content: unknown): Document => {
  const body = Buffer.from(`${JSON.stringify(content)}\n`);
  return { body, hash: createHash('sha512').update(body).digest('hex').toUpperCase() };
};

export interface OpenAPIOptions {
  readonly client: KubeClient;
  readonly resource: DescribedResource;
  /** The list kind in the core group whose schemas are taken, such as io.k8s.api.core.v1.NodeList. */
  readonly coreSchema: string;
  readonly log: Logger;
}

export function openapiRoutes({ client, resource, coreSchema, log }: OpenAPIOptions): Route[] {
  let kept: { documents: Promise<Documents>; until: number } | undefined;

  async function make(): Promise<Documents> {
    let schemas: Schemas | undefined;
    try {
      schemas = closure(await readCoreSchemas(client), coreSchema, schemaNamespace(resource));
    } catch (error) {
      log.warn("the cluster's schemas cannot be read; ours say less until they can", { error });
      if (kept !== undefined) kept.until = Date.now() + retryAfter;
    }
    const v3 = groupDocument(resource, schemas);
    return { v2: documentOf(asSwagger(v3)), v3: documentOf(v3) };
  }

  function documents(): Promise<Documents> {
    if (kept === undefined || Date.now() > kept.until) kept = { documents: make(), until: Date.now() + goodFor };
    return kept.documents;
  }

  const key = `apis/${resource.group}/${resource.version}`;
  const path = `/openapi/v3/${key}`;
  return [
    {
      method: 'get',
      path: '/openapi/v2',
      summary: 'Swagger 2.0 of the aggregated group',
      handler: async (_req, res, context) => send(res, context, (await documents()).v2),
    },
    {
      method: 'get',
      path: '/openapi/v3',
      summary: 'Where the OpenAPI 3 documents are',
      handler: async (_req, res, context) => {
        const { hash } = (await documents()).v3;
        send(res, context, documentOf({ paths: { [key]: { serverRelativeURL: `${path}?hash=${hash}` } } }));
      },
    },
    {
      method: 'get',
      path,
      summary: 'OpenAPI 3 of the aggregated group',
      handler: async (_req, res, context) => {
        const { v3 } = await documents();
        const asked = context.query.get('hash');
        if (asked !== null && asked !== v3.hash) {
          res.statusCode = 301;
          res.setHeader('Location', `${path}?hash=${v3.hash}`);
          res.end();
          return;
        }
        if (asked !== null) {
          res.setHeader('Cache-Control', 'public, immutable');
          res.setHeader('Expires', new Date(Date.now() + year).toUTCString());
        }
        send(res, context, v3);
      },
    },
  ];
}

/** JSON with an ETag; a client that takes only protobuf is told so and falls back. */
function send(res: Response, { query }: RequestContext, { body, hash }: Document): void {
  const { accept = '*/*', 'if-none-match': known } = res.req.headers;
  if (!/(^|[\s,])(\*\/\*|application\/(\*|json))($|[\s,;])/.test(accept)) throw notAcceptable(['application/json']);
  if (!query.has('hash')) res.setHeader('Cache-Control', 'no-cache, private');
  res.setHeader('ETag', `"${hash}"`);
  res.setHeader('Vary', 'Accept');
  if (known?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === `"${hash}"`)) {
    res.statusCode = 304;
    res.end();
    return;
  }
  res.setHeader('Content-Type', 'application/json');
  res.setHeader('Content-Length', body.length);
  res.end(body);
}
