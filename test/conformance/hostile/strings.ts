/** Every string that an endpoint accepts, from the published descriptions. */
import { clientGrantTypes } from '../../../src/config/schema.ts';
import { callback, client, password, pod } from './site.ts';

type Json = Readonly<Record<string, unknown>>;

interface Schema extends Json {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema?: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

export interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Request without the hostile value. */
export interface Frame {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly type?: string;
  readonly form?: Readonly<Record<string, string>>;
}

/** Destination of the value: `name` is a parameter, a header, a form field, or a path of members in JSON. */
export interface HostileString {
  readonly frame: Frame;
  readonly place: 'path' | 'query' | 'header' | 'form' | 'json';
  readonly name: string;
}

export const titleOf = ({ frame: { method, path, form }, place, name }: HostileString): string =>
  `${method} ${path} ${form?.['grant_type'] ?? ''} ${place} ${name}`.replaceAll(/ +/g, ' ');

/** Values with which every other string is processed as far as possible. */
const usual: Readonly<Record<string, string>> = {
  ...client,
  username: 'alice',
  password,
  redirect_uri: callback,
  response_type: 'code',
  code_challenge: 'A'.repeat(43),
  code_challenge_method: 'S256',
  scope: 'openid',
  subject_token: 'x',
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  resources: 'pods',
  ...pod,
};

/** Headers of every request, even if not described. */
const headers = [
  'accept',
  'accept-encoding',
  'accept-language',
  'audit-id',
  'authorization',
  'content-encoding',
  'content-type',
  'cookie',
  'expect',
  'host',
  'if-none-match',
  'impersonate-extra-x',
  'impersonate-group',
  'impersonate-uid',
  'impersonate-user',
  'last-event-id',
  'origin',
  'range',
  'referer',
  'sec-fetch-site',
  'sec-websocket-protocol',
  'traceparent',
  'upgrade',
  'user-agent',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-http-method-override',
  'x-remote-extra-x',
  'x-remote-group',
  'x-remote-user',
  'x-request-id',
];
// One read, one write and one page suffice for headers.
const withHeaders = ['get /kapis/resources.platform.io/v1alpha3/nodes', 'post /oauth/token', 'get /oauth/login'];

const deepest = 5;

/** Returns the paths of members that are strings. */
function stringsIn(schema: Schema, schemas: Description['components']['schemas'], depth = 0): string[] {
  const known = schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});
  if (depth === deepest) return [];
  if (known.items !== undefined) return stringsIn(known.items, schemas, depth + 1).map((path) => `0.${path}`);
  if (known.properties === undefined) return known.type === undefined || known.type === 'string' ? [''] : [];
  return Object.entries(known.properties).flatMap(([name, inner]) =>
    stringsIn(inner, schemas, depth + 1).map((path) => (path === '' ? name : `${name}.${path}`)),
  );
}

function inForm(frame: Frame, fields: readonly string[]): HostileString[] {
  const of = (form: Readonly<Record<string, string>>): HostileString[] =>
    fields.map((name) => ({ frame: { ...frame, form }, place: 'form', name }));
  const form = Object.fromEntries(fields.flatMap((name) => (usual[name] === undefined ? [] : [[name, usual[name]]])));
  if (!fields.includes('grant_type')) return of(form);
  return clientGrantTypes.flatMap((grant_type) => of({ ...form, grant_type }));
}

export function hostileStrings({ paths, components: { schemas } }: Description): HostileString[] {
  const all: HostileString[] = [];
  for (const [path, item] of Object.entries(paths))
    for (const [method, { parameters = [], requestBody }] of Object.entries(item)) {
      const required = parameters.filter(
        ({ name }) => path.startsWith('/oauth/authorize') && usual[name] !== undefined,
      );
      const query = Object.fromEntries(required.map(({ name }) => [name, usual[name] ?? '']));
      const frame: Frame = { method: method.toUpperCase(), path, query };
      for (const { in: place, name } of parameters)
        all.push({ frame, place: place as 'path' | 'query' | 'header', name });
      if (withHeaders.includes(`${method} ${path}`))
        for (const name of headers) all.push({ frame, place: 'header', name });
      for (const [type, { schema }] of Object.entries(requestBody?.content ?? {})) {
        const names = stringsIn(schema, schemas);
        if (type === 'application/x-www-form-urlencoded') all.push(...inForm({ ...frame, type }, names));
        else for (const name of names) all.push({ frame: { ...frame, type }, place: 'json', name });
      }
    }
  const seen = new Set<string>();
  return all.filter((one) => !seen.has(titleOf(one)) && seen.add(titleOf(one)));
}

/** Fills in the parameters of a path except one. */
export const pathOf = (path: string, but?: string): string =>
  path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => (name === but ? whole : (usual[name] ?? 'x')));
