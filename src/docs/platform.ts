/**
 * `/swagger/platform.json` and `/swagger/platform.v3.json`: the platform's own APIs in Swagger 2.0 and OpenAPI 3.1, made of the routes that
 * serve them when they are first asked for.
 */
import { anonymous, authenticated, type UnmatchedPaths } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { json, type Route } from '../http/route.ts';
import { documentSchema, PreparedDocument } from '../http/response/prepared-document.ts';
import { readExamples } from './openapi/examples.ts';
import { openapi31 } from './openapi/openapi31.ts';
import { operationOf, tagsOf } from './openapi/operations.ts';
import { swagger20 } from './openapi/swagger20.ts';

/** What `make` makes of the issuer, made when it is first asked for, and again once the issuer is another. */
export function byIssuer<T>(issuer: () => string, make: (issuer: string) => T): () => T {
  let made: { readonly issuer: string; readonly value: T } | undefined;
  return () => {
    const now = issuer();
    if (made?.issuer !== now) made = { issuer: now, value: make(now) };
    return made.value;
  };
}

interface PlatformOptions {
  /** Of this server. */
  readonly version: string;
  /** All that the gateway's face serves beside these documents. */
  readonly routes: readonly Route[];
  readonly issuer: () => string;
}

const title = 'platform-apiserver';
const description = `The APIs of the platform: tokens, accounts, reading the cluster, logs.

- A GET path answers HEAD too.
- Every answer has the header \`Audit-Id\`, by which its request is found in the audit log.
- An unknown parameter is 400 below /kapis, and the answer names the known ones.
- What is below /api, /apis, /openapi and /version is kube-apiserver's, which is asked as the caller; it describes itself at /openapi/v3, and
  custom resources are described at /swagger/custom-resources.json.
- \`/\` leads a browser to the page of its user's account.
- Where a path of /{resources} and another one fit, the other one is meant.`;

export const unmatchedDescriptions: UnmatchedPaths = { paths: /^\/swagger\//, access: authenticated };

export function platformRoutes({ version, routes, issuer }: PlatformOptions): readonly Route[] {
  const document = (path: string, summary: string, make: typeof openapi31): Route => {
    const current = byIssuer(issuer, (now) => {
      const examples = readExamples();
      const operations = all.map((route) => operationOf(route, examples));
      const value = make({ title, description, version, tags: tagsOf(all), operations }, now);
      return new PreparedDocument([Buffer.from(`${JSON.stringify(value)}\n`)]);
    });
    return defineRoute({
      method: 'get',
      path,
      summary,
      access: anonymous,
      responses: json(documentSchema),
      handler: ({ req, res, context }) => current().answer(req, res, context),
    });
  };
  const own = [
    document('/swagger/platform.json', "The platform's APIs in Swagger 2.0", swagger20),
    document('/swagger/platform.v3.json', "The platform's APIs in OpenAPI 3.1", openapi31),
  ];
  const all = [...routes, ...own];
  return own;
}
