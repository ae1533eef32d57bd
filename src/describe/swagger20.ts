import { clientScopes } from '../config/schema.ts';
import type { Answer, Body, Parameter } from '../http/description.ts';
import type { Route } from '../http/route.ts';
import { Components } from './components.ts';
import { license, sorted } from './openapi31.ts';
import { operationIdOf, tagOf, tagsOf, templated } from './operations.ts';
import type { PlatformDescription } from './platform.ts';
import { refusalsOf } from './refusals.ts';
import { merged, type Properties } from './schemas.ts';
import { scopes, securityOf } from './security.ts';

const form = 'application/x-www-form-urlencoded';

/** A parameter's type stands beside its name, and one that may be repeated says how. */
const parameterOf = ({ schema, ...parameter }: Parameter): object => ({
  ...parameter,
  ...(schema as object),
  ...(schema['type'] === 'array' ? { collectionFormat: 'multi' } : {}),
});

/** The platform's APIs in Swagger 2.0. */
export function swagger20({ title, description, version, issuer, routes }: PlatformDescription): object {
  const definitions = new Components('#/definitions/', merged);
  const responses = new Map<string, object>();
  const response = ({ description: text, content = {}, headers }: Answer): object => {
    const [schema] = Object.values(content);
    return {
      description: text,
      ...(headers === undefined
        ? {}
        : {
            headers: Object.fromEntries(
              Object.entries(headers).map(([name, what]) => [name, { description: what, type: 'string' }]),
            ),
          }),
      ...(schema === undefined ? {} : { schema: definitions.write(schema) }),
    };
  };
  const bodyParameters = ({ required, content }: Body): object[] => {
    const fields = content[form];
    if (fields === undefined) {
      const schemas = Object.values(content);
      const [schema, another] = schemas.map((one) => definitions.write(one));
      // One of several has no schema here: which, says the media type.
      return [{ name: 'body', in: 'body', required, schema: another === undefined ? schema : {} }];
    }
    const must = new Set((fields['required'] ?? []) as readonly string[]);
    return Object.entries(fields['properties'] as Properties).map(([name, property]) => ({
      name,
      in: 'formData',
      required: required && must.has(name),
      ...(property as object),
    }));
  };
  const operation = (route: Route): object => {
    const { summary, removed, parameters = [], body, answers = {} } = route;
    const refusals = [...refusalsOf(route)];
    const refused = refusals.map(([status, { name, answer }]) => {
      if (!responses.has(name)) responses.set(name, response(answer));
      return [String(status), { $ref: `#/responses/${name}` }];
    });
    const all = [...Object.values(answers), ...refusals.map(([, { answer }]) => answer)];
    const produces = new Set(all.flatMap(({ content = {} }) => Object.keys(content)));
    const security = securityOf(route);
    const every = [...parameters.map(parameterOf), ...(body === undefined ? [] : bodyParameters(body))];
    return {
      operationId: operationIdOf(route),
      tags: [tagOf(route).name],
      summary,
      ...(removed === true ? { deprecated: true } : {}),
      ...(security === undefined ? {} : { security }),
      ...(body === undefined ? {} : { consumes: Object.keys(body.content) }),
      produces: [...produces],
      ...(every.length === 0 ? {} : { parameters: every }),
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
    type: 'oauth2',
    tokenUrl: `${issuer}/oauth/token`,
    scopes: Object.fromEntries(clientScopes.map((name) => [name, scopes[name]])),
  };
  return {
    swagger: '2.0',
    info: { title, description, version, license },
    security: [{ bearer: [] }, { password: [] }, { authorizationCode: [] }],
    tags: tagsOf(routes),
    paths,
    securityDefinitions: {
      bearer: {
        type: 'apiKey',
        in: 'header',
        name: 'Authorization',
        description: '"Bearer " and an access token, or the token of a ServiceAccount',
      },
      password: { ...flow, flow: 'password' },
      authorizationCode: { ...flow, flow: 'accessCode', authorizationUrl: `${issuer}/oauth/authorize` },
      client: { type: 'basic', description: 'client_id and client_secret of an OAuth client' },
    },
    responses: sorted(responses),
    definitions: definitions.schemas,
  };
}
