/**
 * What a program in TypeScript does with types made by openapi-typescript: `node cases.ts URL` reads who logs in from standard input, and
 * prints what it saw as one JSON object, comparable with those of the other languages. platform.d.ts and custom-resources.d.ts are made
 * beside a copy of this file (test/labs/integration/generated.ts), where it is checked by the compiler too.
 */
import { text } from 'node:stream/consumers';
import createClient from 'openapi-fetch';
import type { components as custom, paths as CustomPaths } from './custom-resources.d.ts';
import type { components, operations, paths } from './platform.d.ts';

type Status = components['schemas']['Status'];
/** In each document by its own words. */
type Refusal = Status | custom['schemas']['Status'];
type CustomUser = custom['schemas']['io.platform.iam.v1alpha2.User'];

interface Known {
  readonly username: string;
  readonly password: string;
  readonly rightless: string;
  readonly rightlessPassword: string;
  readonly namespace: string;
}

const [baseUrl = ''] = process.argv.slice(2);
const known = JSON.parse(await text(process.stdin)) as Known;
const open = createClient<paths, 'application/json'>({ baseUrl });

/** RFC 6749: the body of the request is a form. */
const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };

async function login(username: string, password: string): Promise<string> {
  const { data, error } = await open.POST('/oauth/token', {
    body: { grant_type: 'password', username, password, client_id: 'platform', client_secret: 'platform' },
    headers,
  });
  if (error !== undefined) throw new Error(`${error.error}: ${error.error_description}`);
  const bearer: 'Bearer' = data.token_type;
  return `${bearer} ${data.access_token}`;
}

const admin = { Authorization: await login(known.username, known.password) };
const platform = createClient<paths, 'application/json'>({ baseUrl, headers: admin });
const cluster = createClient<CustomPaths, 'application/json'>({ baseUrl, headers: admin });

function right<T>({ data, error }: { readonly data?: T | undefined; readonly error?: Refusal | undefined }): T {
  if (data === undefined) throw new Error(`${String(error?.code)} ${String(error?.message)}`);
  return data;
}

const refused = (status: Refusal | undefined): unknown => [
  status?.code,
  status?.reason,
  status?.details?.kind,
  status?.details?.name,
];

async function wrongPassword(): Promise<unknown> {
  const { error, response } = await open.POST('/oauth/token', {
    body: {
      grant_type: 'password',
      username: 'nobody-of-typescript',
      password: 'x',
      client_id: 'platform',
      client_secret: 'platform',
    },
    headers,
  });
  return [response.status, error?.error];
}

async function nodes(): Promise<unknown> {
  const query = {
    sortBy: 'name',
    ascending: true,
    limit: 2,
    page: 2,
  } satisfies operations['listNodes']['parameters']['query'];
  const { items, totalItems } = right(
    await platform.GET('/kapis/resources.platform.io/v1alpha3/nodes', { params: { query } }),
  );
  const selected = right(
    await platform.GET('/kapis/resources.platform.io/v1alpha3/nodes', {
      params: {
        query: { labelSelector: 'kubernetes.io/os=linux,!broken', names: 'node-1,no-such', fields: 'metadata.labels' },
      },
    }),
  );
  return {
    page: [items.map(({ metadata }) => metadata.name), totalItems],
    selected: selected.items.map(({ metadata, status }) => [
      metadata.name,
      metadata.labels?.['kubernetes.io/os'],
      status ?? null,
    ]),
  };
}

async function node(): Promise<unknown> {
  const path = '/kapis/resources.platform.io/v1alpha3/nodes/{name}';
  const { kind, metadata, status } = right(await platform.GET(path, { params: { path: { name: 'node-1' } } }));
  const missing = await platform.GET(path, { params: { path: { name: 'no-such' } } });
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    found: [kind, metadata.name, ready?.status, status?.nodeInfo?.operatingSystem],
    missing: refused(missing.error),
  };
}

async function forbidden(): Promise<unknown> {
  const headers = { Authorization: await login(known.rightless, known.rightlessPassword) };
  const { error } = await platform.GET('/kapis/resources.platform.io/v1alpha3/nodes', { headers });
  return refused(error);
}

async function user(): Promise<unknown> {
  const name = 'made-by-typescript';
  const path = { name };
  const body = {
    apiVersion: 'iam.platform.io/v1alpha2',
    kind: 'User',
    metadata: { name },
    spec: { displayName: 'One', email: `${name}@example.com`, groups: ['keepers'] },
  } satisfies components['schemas']['User'];
  const made = right(await platform.POST('/kapis/iam.platform.io/v1alpha2/users', { body }));
  const patched = right(
    await platform.PATCH('/kapis/iam.platform.io/v1alpha2/users/{name}', {
      params: { path },
      body: { spec: { displayName: 'Two', email: null } },
      headers: { 'Content-Type': 'application/merge-patch+json' },
    }),
  );
  const again = await platform.POST('/kapis/iam.platform.io/v1alpha2/users', { body });
  const all = right(await platform.GET('/kapis/iam.platform.io/v1alpha2/users', { params: { query: { name } } }));
  const gone = right(await platform.DELETE('/kapis/iam.platform.io/v1alpha2/users/{name}', { params: { path } }));
  return {
    made: [made.spec?.displayName, made.spec?.email, made.spec?.groups, made.spec?.state],
    patched: [patched.spec?.displayName, patched.spec?.email ?? null],
    again: refused(again.error),
    all: [all.items.map(({ metadata }) => metadata.name), all.totalItems],
    gone: gone.kind,
  };
}

async function whoAmI(): Promise<unknown> {
  const { status } = right(await platform.GET('/kapis/iam.platform.io/v1alpha2/whoami', {}));
  return [status.userInfo.username, status.userInfo.groups, status.user?.passwordChangeRequired];
}

async function logs(): Promise<unknown> {
  const ask = async (
    query: operations['getLoggingLogs']['parameters']['query'],
  ): Promise<components['schemas']['LogQuery']> =>
    right(
      await platform.GET('/kapis/logging.platform.io/v1alpha2/logs', {
        params: { query: { namespaces: known.namespace, ...query } },
      }),
    );
  const found = await ask({ log_query: 'SECOND', size: 1 });
  const counted = await ask({ operation: 'statistics' });
  if (!('query' in found) || !('statistics' in counted)) throw new Error('it is of another operation');
  const { data, error } = await platform.GET('/kapis/logging.platform.io/v1alpha2/logs', {
    params: { query: { start_time: 1_795_341_600_000 } },
  });
  return {
    query: [found.query.total, found.query.records.map(({ log, container }) => [container, log])],
    statistics: [counted.statistics.containers, counted.statistics.logs],
    wrong: [data ?? null, error?.reason, error?.details?.causes?.[0]?.field],
  };
}

/** The same User as kube-apiserver has it, through the gateway. */
async function customResource(): Promise<unknown> {
  const name = 'custom-by-typescript';
  const path = { name };
  const body = {
    apiVersion: 'iam.platform.io/v1alpha2',
    kind: 'User',
    metadata: { name },
    spec: { displayName: 'Three' },
  } satisfies CustomUser;
  const made = right(await cluster.POST('/apis/iam.platform.io/v1alpha2/users', { body }));
  const listed = right(
    await cluster.GET('/apis/iam.platform.io/v1alpha2/users', {
      params: { query: { fieldSelector: `metadata.name=${name}` } },
    }),
  );
  const patched = right(
    await cluster.PATCH('/apis/iam.platform.io/v1alpha2/users/{name}', {
      params: { path },
      body: { spec: { state: 'Disabled' } },
      headers: { 'Content-Type': 'application/merge-patch+json' },
    }),
  );
  const gone = right(await cluster.DELETE('/apis/iam.platform.io/v1alpha2/users/{name}', { params: { path } }));
  const missing = await cluster.GET('/apis/iam.platform.io/v1alpha2/users/{name}', { params: { path } });
  return {
    made: [made.kind, made.spec?.displayName, made.spec?.state],
    listed: listed.items.map(({ metadata }) => metadata?.name),
    patched: patched.spec?.state,
    gone: gone.status,
    missing: refused(missing.error),
  };
}

/** What the compiler refuses, for the description has no such thing. It is never called. */
export async function wrong(): Promise<void> {
  // @ts-expect-error There is no such path.
  await platform.GET('/kapis/resources.platform.io/v1alpha3/no/such/path');
  // @ts-expect-error There is no such parameter.
  await platform.GET('/kapis/resources.platform.io/v1alpha3/nodes', { params: { query: { sort: 'name' } } });
  // @ts-expect-error A parameter of another type.
  await platform.GET('/kapis/resources.platform.io/v1alpha3/nodes', { params: { query: { limit: 'two' } } });
  // @ts-expect-error No state of a node.
  await platform.GET('/kapis/resources.platform.io/v1alpha3/nodes', { params: { query: { status: 'well' } } });
  // @ts-expect-error The name is missing.
  await platform.GET('/kapis/resources.platform.io/v1alpha3/nodes/{name}', {});
  const state = 'Asleep';
  // @ts-expect-error No state of a user.
  const spec: components['schemas']['UserSpec'] = { state };
  // @ts-expect-error Not every one has it.
  const displayName: string = spec.displayName;
  const failed = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' } as const;
  // @ts-expect-error A refusal says more.
  const status: Status = failed;
  console.log(displayName, status);
}

console.log(
  JSON.stringify({
    'wrong password': await wrongPassword(),
    nodes: await nodes(),
    node: await node(),
    forbidden: await forbidden(),
    user: await user(),
    'who am I': await whoAmI(),
    logs: await logs(),
    'custom resource': await customResource(),
  }),
);
