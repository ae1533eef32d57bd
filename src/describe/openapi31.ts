import { clientScopes } from '../config/schema.ts';
import type { Answer, Content } from '../http/description.ts';
import type { Route } from '../http/route.ts';
import { Components } from './components.ts';
import { operationIdOf, tagOf, tagsOf, templated } from './operations.ts';
import type { PlatformDescription } from './platform.ts';
import { refusalsOf } from './refusals.ts';
import { scopes, securityOf } from './security.ts';

export const license = { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' };

/** The platform's APIs in OpenAPI 3.1. */
export function openapi31({ title, description, version, issuer, routes }: PlatformDescription): object {
  const components = new Components('#/components/schemas/');
  const responses = new Map<string, object>();
  const content = (of: Content): object =>
    Object.fromEntries(Object.entries(of).map(([type, schema]) => [type, { schema: components.write(schema) }]));
  const response = ({ description: text, content: of, headers }: Answer): object => ({
    description: text,
    ...(headers === undefined
      ? {}
      : {
          headers: Object.fromEntries(
            Object.entries(headers).map(([name, what]) => [name, { description: what, schema: { type: 'string' } }]),
          ),
        }),
    ...(of === undefined ? {} : { content: content(of) }),
  });
  const operation = (route: Route): object => {
    const { summary, removed, parameters = [], body, answers = {} } = route;
    const refused = [...refusalsOf(route)].map(([status, { name, answer }]) => {
      if (!responses.has(name)) responses.set(name, response(answer));
      return [String(status), { $ref: `#/components/responses/${name}` }];
    });
    const security = securityOf(route);
    return {
      operationId: operationIdOf(route),
      tags: [tagOf(route).name],
      summary,
      ...(removed === true ? { deprecated: true } : {}),
      ...(security === undefined ? {} : { security }),
      ...(parameters.length === 0
        ? {}
        : { parameters: parameters.map((one) => ({ ...one, schema: components.write(one.schema) })) }),
      ...(body === undefined
        ? {}
        : {
            requestBody: {
              ...(body.description === undefined ? {} : { description: body.description }),
              required: body.required,
              content: content(body.content),
            },
          }),
      responses: {
        ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, response(answer)])),
        ...(Object.fromEntries(refused) as object),
      },
    };
  };
  const paths = Object.fromEntries(
    [...Map.groupBy(routes, ({ path }) => templated(path))].map(([path, those]) => [
      path,
      Object.fromEntries(those.map((route) => [route.method, operation(route)])),
    ]),
  );
  const flow = {
    tokenUrl: `${issuer}/oauth/token`,
    refreshUrl: `${issuer}/oauth/token`,
    scopes: Object.fromEntries(clientScopes.map((name) => [name, scopes[name]])),
  };
  return {
    openapi: '3.1.0',
    info: { title, description, version, license },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { oauth2: [] }],
    tags: tagsOf(routes),
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An access token, or the token of a ServiceAccount' },
        oauth2: {
          type: 'oauth2',
          flows: { password: flow, authorizationCode: { authorizationUrl: `${issuer}/oauth/authorize`, ...flow } },
        },
        client: { type: 'http', scheme: 'basic', description: 'client_id and client_secret of an OAuth client' },
      },
      responses: sorted(responses),
      schemas: components.schemas,
    },
  };
}

export const sorted = (all: ReadonlyMap<string, object>): object =>
  Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1)));
