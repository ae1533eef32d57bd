/** The chart's Ingress and HTTPRoute and the documented TLSRoute, with a real Traefik in front of a server with its own certificate. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Agent } from 'undici';
import { listenTo, tokenProtocol, type Listening } from '../fakes/web-socket.ts';
import { execute, type Executed } from '../../hack/cluster/exec.ts';
import { execUser } from '../../hack/cluster/log-node.ts';
import { buildTimeout } from '../../hack/ingress/traefik.ts';
import { release } from '../../hack/run/chart.ts';
import { configure } from '../labs/integration/configure.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, nodesPath, open, type Call, type HttpResponse } from '../labs/integration/http.ts';
import { create, nodePath, patch } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { readAudit } from '../labs/integration/log.ts';
import { runningPods, startLogNode, type LogNode } from '../labs/integration/log-node.ts';
import { passwordForm, postForm, type Tokens } from '../labs/integration/login.ts';
import type { Extra } from '../labs/integration/servers.ts';
import { apply, documentedObject, host, renderRoutes, type Undo } from '../labs/ingress/routes.ts';
import { routeTo, startBackend, startForeignBackend } from '../labs/ingress/server.ts';
import { startTraefikInLab, type Traefik } from '../labs/ingress/traefik.ts';

interface Route {
  readonly title: string;
  readonly objects: () => Promise<readonly object[]>;
  /** Traefik terminates TLS, and connects over TLS again. */
  readonly isTerminated: boolean;
}

/** The Secret that the documented annotations of ingress-nginx name. */
const nginxSecret = (): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'platform-ca', namespace: release.namespace },
  stringData: { 'ca.crt': lab().authority },
});

const routes: readonly Route[] = [
  {
    title: 'an Ingress of Traefik',
    objects: async () => [...(await renderRoutes('className: traefik')), documentedObject('ServersTransport')],
    isTerminated: true,
  },
  {
    title: 'an Ingress with the annotations of ingress-nginx',
    objects: async () => [...(await renderRoutes('className: nginx')), nginxSecret()],
    isTerminated: true,
  },
  { title: 'an HTTPRoute', objects: () => renderRoutes('httpRoute:'), isTerminated: true },
  { title: 'a TLSRoute', objects: async () => [documentedObject('TLSRoute')], isTerminated: false },
];

const namespace = 'ingress';
let traefik: Traefik;
let server: Extra;
let foreign: Extra;
let node: LogNode;
let pod = '';
const cleanup: Undo[] = [];

beforeAll(async () => {
  traefik = await startTraefikInLab(cleanup);
  cleanup.push(
    await configure((configuration) => {
      configuration['gateway'] = { ...(configuration['gateway'] as object), externalURL: `https://${host}` };
    }),
  );
  server = await startBackend();
  cleanup.push(() => server.stop());
  cleanup.push(await routeTo(server));
  foreign = await startForeignBackend();
  cleanup.push(() => foreign.stop());
  node = await startLogNode({ [namespace]: ['shell'] }, [namespace]);
  cleanup.push(() => node.stop());
  const spec = { nodeName: node.name, containers: [{ name: 'shell', image: 'none' }] };
  await create(`/api/v1/namespaces/${namespace}/pods`, { metadata: { name: 'shell' }, spec });
  [pod = ''] = await runningPods(namespace, 1);
}, buildTimeout);
afterAll(async () => {
  for (const undo of cleanup.toReversed()) await undo();
});

describe.each(routes)('$title', ({ title, objects, isTerminated }) => {
  let base = '';
  let authority = '';
  let token = '';
  let remove: Undo | undefined;

  beforeAll(async () => {
    const { ports } = traefik;
    base = `https://${host}:${isTerminated ? ports.websecure : ports.passthrough}`;
    authority = isTerminated ? traefik.authority : lab().authority;
    remove = await apply(...(await objects()));
    await eventually(`${title} routes requests`, () => assertStatus(200));
    const response = await postForm(passwordForm('admin'), { base, authority });
    token = (response.json as Tokens).access_token;
  });
  afterAll(async () => {
    await remove?.();
    if (isTerminated) await eventually('the route is gone', () => assertStatus(404));
  });

  const send = (path: string, options: Call = {}): Promise<HttpResponse> =>
    call(`${base}${path}`, { authority, ...options });

  async function assertStatus(expected: number): Promise<void> {
    const { status } = await send('/livez');
    if (status !== expected) throw new Error(`/livez returned ${status}`);
  }

  test(`${title} routes logins and lists to the server`, async () => {
    expect(token).not.toBe('');
    expect((await send('/.well-known/openid-configuration')).json).toMatchObject({ issuer: expect.any(String) });
    const page = await send('/oauth/login');
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining('<form method="post"') });
    const { items } = (await send(nodesPath, { token })).json as { items: readonly object[] };
    expect(items.length).toBeGreaterThan(0);
  });

  test(`${title} forwards each event of a watch at once`, async () => {
    const watch = await open(`${base}${nodesPath}?watch=true`, { authority, token });
    try {
      const lines = createInterface({ input: watch })[Symbol.asyncIterator]();
      for (const round of ['first', 'second']) {
        const value = `${round}-${randomUUID()}`;
        await patch(nodePath('node-1'), { metadata: { annotations: { 'example.com/event': value } } });
        let line = '';
        while (!line.includes(value)) line = (await lines.next()).value as string;
        expect(JSON.parse(line)).toMatchObject({ type: 'MODIFIED' });
      }
    } finally {
      watch.destroy();
    }
  });

  test(`${title} forwards kubectl exec over WebSocket and over SPDY`, async () => {
    const file = join(lab().dir, 'public-ca.crt');
    writeFileSync(file, authority);
    const flags = [`--server=${base}`, `--certificate-authority=${file}`, `--token=${token}`];
    const exec = (isWebSocket: boolean): Promise<Executed> =>
      execute(lab().kubectl, [...flags, 'exec', `--namespace=${namespace}`, pod, '--', 'id', '-u'], {
        env: {
          KUBECONFIG: '/dev/null',
          HOME: lab().dir,
          KUBECTL_REMOTE_COMMAND_WEBSOCKETS: String(isWebSocket),
        },
        timeout: 60_000,
      });
    for (const isWebSocket of [true, false])
      expect(await exec(isWebSocket)).toMatchObject({ code: 0, stdout: `${execUser()}\n` });
  });

  test(`${title} forwards the messages of a WebSocket to kube-apiserver`, async () => {
    const dispatcher = new Agent({ connect: { ca: authority } });
    let opened: Listening | undefined;
    try {
      const socket = await listenTo(`${base.replace('https', 'wss')}/api/v1/nodes?watch=true`, {
        protocols: ['any', tokenProtocol(token)],
        headers: { origin: base },
        dispatcher,
      });
      opened = socket;
      const value = randomUUID();
      await patch(nodePath('node-1'), { metadata: { annotations: { 'example.com/event': value } } });
      const hasEvent = (): boolean => socket.messages.some((message) => message.includes(value));
      for (let count = 1; count <= 100 && !hasEvent(); count += 1) await socket.until(count);
      expect(hasEvent()).toBe(true);
    } finally {
      opened?.client.close();
      await dispatcher.destroy();
    }
  });

  test(`${title} ${isTerminated ? 'gives the server the address of the client' : 'hides the address of the client'}`, async () => {
    const restore = await configure((configuration) => {
      configuration.requests = { trustedProxies: isTerminated ? [`${lab().address}/32`] : [] };
    });
    try {
      await eventually('the server logs the address', async () => {
        const path = `${nodesPath}/${randomUUID()}`;
        await send(path, { token, headers: { 'x-forwarded-for': '203.0.113.9' } });
        const event = readAudit(server.log).findLast(({ requestURI }) => requestURI === path);
        expect(event?.sourceIPs).toEqual([isTerminated ? '127.0.0.1' : lab().address]);
      });
    } finally {
      await restore();
    }
  });

  if (isTerminated)
    test(`${title} refuses a server whose certificate another CA issued`, async () => {
      await routeTo(foreign);
      try {
        await eventually('Traefik uses the other server', async () =>
          expect(await send('/livez')).toMatchObject({ status: 500, text: 'Internal Server Error' }),
        );
      } finally {
        await routeTo(server);
      }
      await eventually('Traefik uses the server again', async () => expect((await send('/livez')).status).toBe(200));
    });
});
