/**
 * WebSockets that a cross-site page, such as a console, opens in a real browser. The token is in a subprotocol, because
 * browsers send no Authorization header with a handshake (docs/reference/gateway.md).
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { tokenProtocol } from '../fakes/web-socket.ts';
import { issuer, startBrowser } from '../labs/integration/browser.ts';
import { call, nodesPath, secureGateway } from '../labs/integration/http.ts';
import { create, createNode, nodePath, remove } from '../labs/integration/kube.ts';
import { runningPods, startLogNode, type LogNode } from '../labs/integration/log-node.ts';
import { encode, login, passwordOf, platform } from '../labs/integration/login.ts';
import { atAccount, logIn } from '../labs/integration/pages.ts';
import { remember } from '../labs/integration/secrets.ts';
import { startSites, type Sites } from '../labs/integration/sites.ts';

const site = 'https://console.example';
const namespace = 'browser-web-socket';
const log = `/api/v1/namespaces/${namespace}/pods/web/log?follow=true`;

let node: LogNode;
let sites: Sites;
let browser: Browser;
beforeAll(async () => {
  node = await startLogNode({ [namespace]: ['web'] });
  await create(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name: 'web' },
    spec: { nodeName: node.name, containers: [{ name: 'web', image: 'none' }] },
  });
  await runningPods(namespace, 1);
  sites = await startSites([new URL(site).host]);
  browser = await startBrowser(sites);
});
afterAll(async () => {
  await browser.close();
  await sites.stop();
  await node.stop();
});

/** Opens a cross-site page. */
async function pageOfSite(username?: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  if (username !== undefined) {
    await page.goto(issuer);
    await logIn(page, username, passwordOf(username));
    await atAccount(page);
  }
  await page.goto(site);
  return page;
}

async function newToken(): Promise<string> {
  const { access_token: token } = await login('admin');
  remember(tokenProtocol(token));
  return token;
}

/** Connection state, close code and messages of a WebSocket in a page. */
interface Socket {
  state: 'connecting' | 'open' | 'closed';
  protocol: string;
  code: number;
  readonly messages: string[];
}
type Window = typeof globalThis & { socket: Socket };

/** Opens a WebSocket in a page. */
const connect = (page: Page, path: string, protocols: readonly string[]): Promise<void> =>
  page.evaluate(
    ({ url, offered }) => {
      const client = new WebSocket(url, offered);
      const socket: Socket = { state: 'connecting', protocol: '', code: 0, messages: [] };
      (globalThis as Window).socket = socket;
      client.addEventListener('open', () => {
        socket.state = 'open';
        socket.protocol = client.protocol;
      });
      client.addEventListener('message', ({ data }) => socket.messages.push(String(data)));
      client.addEventListener('close', ({ code }) => {
        socket.state = 'closed';
        socket.code = code;
      });
    },
    { url: `${issuer.replace('https:', 'wss:')}${path}`, offered: [...protocols] },
  );

const socketIn = (page: Page): Promise<Socket> => page.evaluate(() => (globalThis as Window).socket);
const closed = async (page: Page): Promise<Socket> => {
  await page.waitForFunction(() => (globalThis as Window).socket.state === 'closed');
  return socketIn(page);
};
const received = async (page: Page, text: string): Promise<void> => {
  await page.waitForFunction(
    (wanted) => (globalThis as Window).socket.messages.some((message) => message.includes(wanted)),
    text,
  );
};

const encoded = (line: string): string => Buffer.from(line).toString('base64');

describe('a cross-site page with the token in a subprotocol', () => {
  test.each([
    ['the cached nodes', nodesPath],
    ['the nodes of kube-apiserver', '/api/v1/nodes'],
  ])('a cross-site page with the token in a subprotocol can watch %s', async (_, path) => {
    const page = await pageOfSite();
    const name = `browser-${randomUUID()}`;
    const query = `watch=true&timeoutSeconds=60&fieldSelector=metadata.name%3D${name}`;
    await connect(page, `${path}?${query}`, ['watch', tokenProtocol(await newToken())]);
    await page.waitForFunction(() => (globalThis as Window).socket.state === 'open');
    await createNode(name);
    await received(page, '"type":"ADDED"');
    await remove(nodePath(name));
    await received(page, '"type":"DELETED"');
    const { protocol, messages } = await socketIn(page);
    expect(protocol).toBe('watch');
    for (const message of messages) expect(message).toContain(`"name":"${name}"`);
  });

  test('a cross-site page with the token in a subprotocol can follow a pod log until the session is revoked', async () => {
    const page = await pageOfSite();
    const token = await newToken();
    node.write(namespace, 'web', { time: new Date(), log: 'the first line' });
    await connect(page, log, ['base64.binary.k8s.io', tokenProtocol(token)]);
    await received(page, encoded('the first line\n'));
    node.write(namespace, 'web', { time: new Date(), log: 'the next line' });
    await received(page, encoded('the next line\n'));
    await call(`${secureGateway(1)}/oauth/revoke`, {
      method: 'POST',
      body: encode({ token, ...platform }),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect((await closed(page)).protocol).toBe('base64.binary.k8s.io');
  });

  test('a cross-site page cannot open a WebSocket with an invalid token', async () => {
    const page = await pageOfSite();
    await connect(page, log, ['base64.binary.k8s.io', tokenProtocol('wrong')]);
    expect(await closed(page)).toEqual({ state: 'closed', protocol: '', code: 1006, messages: [] });
  });
});

// evidence: browser-web-socket-hijacking
test.each(['/api/v1/nodes?watch=true', `${nodesPath}?watch=true`, log])(
  'a cross-site page cannot open a WebSocket to %s with the cookies of a login',
  async (path) => {
    const page = await pageOfSite('admin');
    await connect(page, path, []);
    expect(await closed(page)).toEqual({ state: 'closed', protocol: '', code: 1006, messages: [] });
  },
);
