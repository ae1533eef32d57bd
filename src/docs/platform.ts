/**
 * `/swagger/platform.json` and `/swagger/platform.v3.json`: the platform's own APIs in Swagger 2.0 and OpenAPI 3.1. The first request makes
 * them from the routes.
 */
import { anonymous } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, type Route } from '../http/route.ts';
import { documentSchema, PreparedDocument } from '../http/response/prepared-document.ts';
import { readExamples } from './openapi/examples.ts';
import { openapi31 } from './openapi/openapi31.ts';
import { operationOf, tagsOf } from './openapi/operations.ts';
import { swagger20 } from './openapi/swagger20.ts';

/** Returns the value that `make` makes for the current issuer: made on first use, and again when the issuer changes. */
export function byIssuer<T>(issuer: () => string, make: (issuer: string) => T): () => T {
  let made: { readonly issuer: string; readonly value: T } | undefined;
  return () => {
    const now = issuer();
    if (made?.issuer !== now) made = { issuer: now, value: make(now) };
    return made.value;
  };
}

interface PlatformOptions {
  /** Version of this server. */
  readonly version: string;
  /** All routes of the gateway beside these documents. */
  readonly routes: readonly Route[];
  readonly issuer: () => string;
}

const title = 'platform-apiserver';
const description = `The APIs of the platform: tokens, accounts, resources of the cluster, and logs.

- Every GET path also accepts HEAD.
- Every response has the header \`Audit-Id\`, which identifies the request in the audit log.
- Below \`/kapis\`, an unknown parameter is rejected with 400; the message lists the known ones.
- Paths below \`/api\`, \`/apis\`, \`/openapi\` and \`/version\` are sent to kube-apiserver with the rights of the caller. It describes them at \`/openapi/v3\`; \`/swagger/custom-resources.json\` describes custom resources.
- \`/\` redirects browsers to the account page.
- A path with its own description takes precedence over \`/{resources}\`.`;

/** Sentence for the descriptions of documents. */
export const cached = 'Send the `ETag` of the response as `If-None-Match`: an unchanged document is 304.';

export function platformRoutes({ version, routes, issuer }: PlatformOptions): readonly Route[] {
  const document = (path: string, format: string, make: typeof openapi31): Route => {
    const current = byIssuer(issuer, (now) => {
      const examples = readExamples();
      const operations = all.map((route) => operationOf(route, examples));
      const value = make({ title, description, version, tags: tagsOf(all), operations }, now);
      return new PreparedDocument([Buffer.from(`${JSON.stringify(value)}\n`)]);
    });
    return defineRoute({
      method: 'get',
      path,
      summary: `Get the API description in ${format}`,
      description: `Describes the APIs of the platform. Needs no credentials. ${cached}`,
      access: anonymous,
      responses: json(documentSchema, 'The description'),
      handler: ({ req, res, context }) => current().answer(req, res, context),
    });
  };
  const own = [
    document('/swagger/platform.json', 'Swagger 2.0', swagger20),
    document('/swagger/platform.v3.json', 'OpenAPI 3.1', openapi31),
  ];
  const all = [...routes, ...own];
  return own;
}
