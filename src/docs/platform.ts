/**
 * `/swagger/platform.json` and `/swagger/platform.v3.json`: the platform's own APIs in Swagger 2.0 and OpenAPI 3.1. The
 * documents are built from the routes on the first request.
 */
import { anonymous } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, type Route } from '../http/route.ts';
import { documentSchema, PreparedDocument } from '../http/response/prepared-document.ts';
import { readExamples } from './openapi/examples.ts';
import { openapi31 } from './openapi/openapi31.ts';
import { operationOf, tagsOf } from './openapi/operations.ts';
import { swagger20 } from './openapi/swagger20.ts';

/**
 * Returns a getter that caches `build(issuer)`. The getter calls `build` on first use, and again when the issuer
 * changes.
 */
export function byIssuer<T>(issuer: () => string, build: (issuer: string) => T): () => T {
  let built: { readonly issuer: string; readonly value: T } | undefined;
  return () => {
    const now = issuer();
    if (built?.issuer !== now) built = { issuer: now, value: build(now) };
    return built.value;
  };
}

interface PlatformOptions {
  /** Version of this server. */
  readonly version: string;
  /** All gateway routes except those that serve these documents. */
  readonly routes: readonly Route[];
  readonly issuer: () => string;
}

const title = 'platform-apiserver';
const description = `The APIs of the platform: tokens, accounts, resources of the cluster, and logs.

- Every GET path also accepts HEAD.
- Every response has the header \`Audit-Id\`, which identifies the request in the audit log.
- Below \`/kapis\`, an unknown parameter is rejected with 400; the message names the closest known parameter.
- Paths below \`/api\`, \`/apis\`, \`/openapi\` and \`/version\` are sent to kube-apiserver with the rights of the caller. kube-apiserver describes these paths at \`/openapi/v3\`; \`/swagger/custom-resources.json\` describes custom resources.
- \`/\` redirects browsers to the account page.
- A path with its own description takes precedence over \`/{resources}\`.`;

/** Sentence in the description of every document. */
export const conditional =
  'To save the transfer of an unchanged document, send its `ETag` as `If-None-Match`: the response is 304.';

export function platformRoutes({ version, routes, issuer }: PlatformOptions): readonly Route[] {
  const document = (path: string, format: string, build: typeof openapi31): Route => {
    const current = byIssuer(issuer, (now) => {
      const examples = readExamples();
      const operations = all.map((route) => operationOf(route, examples));
      const value = build({ title, description, version, tags: tagsOf(all), operations }, now);
      return new PreparedDocument([Buffer.from(`${JSON.stringify(value)}\n`)]);
    });
    return defineRoute({
      method: 'get',
      path,
      summary: `Get the API description in ${format}`,
      description: `Describes the APIs of the platform. Requires no authentication. ${conditional}`,
      access: anonymous,
      responses: json(documentSchema, 'The description'),
      handler: ({ req, res, context }) => current().write(req, res, context),
    });
  };
  const own = [
    document('/swagger/platform.json', 'Swagger 2.0', swagger20),
    document('/swagger/platform.v3.json', 'OpenAPI 3.1', openapi31),
  ];
  const all = [...routes, ...own];
  return own;
}
