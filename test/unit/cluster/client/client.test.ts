import { afterEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { createAuthority, type Authority } from '../../../../hack/cluster/pki.ts';
import { accessReview } from '../../../../src/auth/authorizers/access-review.ts';
import type { UserInfo } from '../../../../src/auth/user.ts';
import { createKubeClient, type Cluster, type KubeClient } from '../../../../src/cluster/client/client.ts';
import { asUser } from '../../../../src/cluster/client/impersonation.ts';
import type { Clock } from '../../../../src/runtime/time.ts';
import { craftJWT } from '../../../fakes/jwt.ts';
import { FakeSpan, within } from '../../../fakes/span.ts';
import { FakeKubeApiserver } from '../../../fakes/upstream.ts';
import { FakeClock } from '../../../labs/cluster-fakes.ts';

let client: KubeClient | undefined;
let directory = '';
afterEach(async () => {
  await client?.close();
  rmSync(directory, { recursive: true, force: true });
});

/** A client that authenticates with this token. */
async function clientOf(token: string, server = 'https://127.0.0.1:1', clock?: Clock): Promise<Cluster> {
  directory = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  const file = join(directory, 'config');
  // JSON is also valid YAML.
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    clusters: [{ name: 'here', cluster: { server } }],
    users: [{ name: 'me', user: token === '' ? {} : { token } }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
  };
  writeFileSync(file, JSON.stringify(kubeconfig));
  const own = await createKubeClient({ kubeconfig: file, ...(clock === undefined ? {} : { clock }) });
  client = own;
  return own;
}

const issuer = 'https://kubernetes.default.svc';

test.each<[string, string, { issuer: string | undefined; audiences: string[] }]>([
  [
    'a list of audiences',
    craftJWT({ alg: 'RS256' }, { iss: issuer, aud: [issuer, 'k3s'] }),
    { issuer, audiences: [issuer, 'k3s'] },
  ],
  ['a single audience', craftJWT({ alg: 'RS256' }, { iss: issuer, aud: issuer }), { issuer, audiences: [issuer] }],
  ['a token without these claims', craftJWT({ alg: 'RS256' }, {}), { issuer: undefined, audiences: [] }],
  ['claims that are null', craftJWT({ alg: 'RS256' }, { iss: null, aud: null }), { issuer: undefined, audiences: [] }],
  [
    'a payload that is not an object',
    `e30.${Buffer.from('null').toString('base64url')}.e30`,
    { issuer: undefined, audiences: [] },
  ],
  ['an opaque token', 'opaque', { issuer: undefined, audiences: [] }],
  ['an opaque token with dots', 'ya29.c.b0AXv0zTPl', { issuer: undefined, audiences: [] }],
  ['an empty token', '', { issuer: undefined, audiences: [] }],
])("reading the audiences and the issuer from the server's own token succeeds for %s", async (_, token, expected) => {
  const own = await clientOf(token);
  expect({ issuer: await own.issuer(), audiences: await own.audiences() }).toEqual(expected);
});

test('requests to kube-apiserver do not wait for watches, however many are open', async () => {
  const kube = new FakeKubeApiserver();
  kube.serve = ({ url }, res) => (url?.includes('watch') === true ? res.flushHeaders() : void res.end('{"a":1}'));
  const own = await clientOf('opaque', await kube.listen());
  try {
    const many = Array.from({ length: 200 }, () => own.stream('/api/v1/pods', { query: { watch: true } }));
    for (const { status } of await Promise.all(many)) expect(status).toBe(200);
    expect(await own.json('/api')).toEqual({ a: 1 });
  } finally {
    await own.close();
    kube.close();
  }
});

const user = (username: string): UserInfo => ({ username, groups: [], via: 'token' });

describe('a user who sends as many requests as possible', () => {
  const review = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const reviewed = JSON.stringify({ status: { allowed: true } });
  /** A kube-apiserver that never responds to requests of the user `hog`, and a client of this server. */
  async function lab(): Promise<{ kube: FakeKubeApiserver; own: KubeClient }> {
    const kube = new FakeKubeApiserver();
    kube.serve = (req, res) => {
      const body: Buffer[] = [];
      req.on('data', (chunk: Buffer) => body.push(chunk));
      req.on('end', () => {
        const isHog = req.headers['impersonate-user'] === 'hog' || Buffer.concat(body).includes('"hog"');
        if (!isHog) res.end(req.url === review ? reviewed : '{"a":1}');
      });
    };
    return { kube, own: await clientOf('opaque', await kube.listen()) };
  }

  test('a user who sends as many requests as possible does not delay requests of the server or of other users', async () => {
    const { kube, own } = await lab();
    const hogging = new AbortController();
    try {
      const as = (name: string): ReturnType<typeof asUser> => asUser(own, { ...user(name), proved: false });
      const authorizer = accessReview(own);
      const hogged = Array.from({ length: 300 }, (_, index) =>
        Promise.allSettled([
          as('hog').stream('/api/v1/pods', { signal: hogging.signal }),
          authorizer.authorize(user('hog'), { verb: 'get', group: '', resource: 'pods', namespace: `n${index}` }),
        ]),
      );
      while (kube.seen.length < 64 + 32) await turn();
      const others = Array.from({ length: 20 }, async (_, index) => {
        const name = `user-${index}`;
        expect(await authorizer.authorize(user(name), { verb: 'get', group: '', resource: 'pods' })).toMatchObject({
          allowed: true,
        });
        const { status, body } = await as(name).stream('/api/v1/pods');
        expect([status, await text(body)]).toEqual([200, '{"a":1}']);
        expect(await own.json('/apis/iam.platform.io/v1alpha2/sessions')).toEqual({ a: 1 });
      });
      await Promise.all(others);
      hogging.abort(new Error('over'));
      await own.close();
      await Promise.all(hogged);
    } finally {
      kube.close();
    }
  }, 10_000);
});

test('a request that is aborted while it waits for a slot fails with the same KubeError as a request that is aborted later', async () => {
  const kube = new FakeKubeApiserver();
  kube.serve = () => undefined;
  const own = await clientOf('opaque', await kube.listen());
  try {
    const caller = asUser(own, { ...user('alice'), proved: false });
    const gone = new AbortController();
    const all = Array.from({ length: 65 }, () => caller.stream('/api', { signal: gone.signal }));
    gone.abort(new Error('gone'));
    for (const one of await Promise.allSettled(all))
      expect(one).toMatchObject({ status: 'rejected', reason: { name: 'KubeError', code: 0 } });
  } finally {
    await own.close();
    kube.close();
  }
});

test('the span of a request to kube-apiserver starts after the request has waited for a slot', async () => {
  const kube = new FakeKubeApiserver();
  kube.serve = () => undefined;
  const own = await clientOf('opaque', await kube.listen());
  const span = new FakeSpan();
  const gone = new AbortController();
  try {
    const caller = asUser(own, { ...user('alice'), proved: false });
    const all = within(span, () =>
      Promise.allSettled(Array.from({ length: 65 }, () => caller.stream('/api', { signal: gone.signal }))),
    );
    while (kube.seen.length < 64) await turn();
    expect(span.started).toHaveLength(64);
    gone.abort(new Error('gone'));
    await all;
    expect(span.ended).toHaveLength(64);
  } finally {
    await own.close();
    kube.close();
  }
});

test('after a 401 from kube-apiserver, the credential is read again and the request is repeated exactly once', async () => {
  const kube = new FakeKubeApiserver();
  const codes = [401, 200, 401, 401];
  kube.serve = (_, res) => void res.writeHead(codes.shift() ?? 500).end('{}');
  const own = await clientOf('opaque', await kube.listen());
  try {
    expect(await own.json('/api')).toEqual({});
    await expect(own.json('/api')).rejects.toMatchObject({ code: 401 });
    expect(kube.seen).toHaveLength(4);
  } finally {
    await own.close();
    kube.close();
  }
});

test("the server's identity is requested once each time the credential is read, and again after a failure", async () => {
  const kube = new FakeKubeApiserver();
  const names = ['first', '', 'second'];
  kube.serve = (_, res) => {
    const username = names.shift() ?? '';
    res.writeHead(username === '' ? 500 : 201).end(JSON.stringify({ status: { userInfo: { username, groups: [] } } }));
  };
  const clock = new FakeClock();
  const own = await clientOf('opaque', await kube.listen(), clock);
  try {
    expect(await own.identity()).toEqual({ username: 'first' });
    expect(await own.identity()).toEqual({ username: 'first' });
    await clock.advance(10_001);
    await expect(own.identity()).rejects.toMatchObject({ code: 500 });
    expect(await own.identity()).toEqual({ username: 'second' });
    expect(await own.identity()).toEqual({ username: 'second' });
    expect(kube.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(
      Array.from({ length: 3 }, () => 'POST /apis/authentication.k8s.io/v1/selfsubjectreviews'),
    );
  } finally {
    await own.close();
    kube.close();
  }
});

describe('credentials that are rotated', () => {
  /**
   * A kube-apiserver that accepts one client certificate and responds with the common name of the certificate, and a
   * client that reads its kubeconfig and certificates from `directory`.
   */
  async function lab() {
    const [ca, clients] = await Promise.all([createAuthority('cluster'), createAuthority('clients')]);
    let accepted = 'one';
    const served = async (authority: Authority) => {
      const { certificate: cert, key } = await authority.issue({ commonName: 'kube', server: ['127.0.0.1'] });
      return { cert, key, ca: clients.certificate };
    };
    const kube = createServer({ ...(await served(ca)), requestCert: true }, (req, res) => {
      const { CN } = (req.socket as TLSSocket).getPeerCertificate().subject;
      res.writeHead(CN === accepted ? 200 : 401).end(JSON.stringify({ CN }));
    });
    await once(kube.listen(0, '127.0.0.1'), 'listening');
    directory = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
    const put = (name: string, content: string): void => writeFileSync(join(directory, name), content);
    const putClient = async (commonName: string): Promise<void> => {
      const { certificate, key } = await clients.issue({ commonName });
      put('tls.crt', certificate);
      put('tls.key', key);
    };
    const kubeconfig = {
      'current-context': 'here',
      clusters: [
        {
          name: 'here',
          cluster: {
            server: `https://127.0.0.1:${(kube.address() as AddressInfo).port}`,
            'certificate-authority': 'ca.crt',
          },
        },
      ],
      users: [{ name: 'me', user: { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' } }],
      contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
    };
    put('ca.crt', ca.certificate);
    put('config', JSON.stringify(kubeconfig));
    await putClient('one');
    const clock = new FakeClock();
    const own = await createKubeClient({ kubeconfig: join(directory, 'config'), clock });
    client = own;
    servers.push(kube);
    return {
      own,
      clock,
      put,
      putClient,
      accept: (name: string) => void (accepted = name),
      rotateCA: async (): Promise<void> => {
        const next = await createAuthority('next');
        kube.setSecureContext(await served(next));
        kube.closeAllConnections();
        put('ca.crt', next.certificate);
      },
    };
  }

  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  test('a new client certificate is used after kube-apiserver has rejected the old one', async () => {
    const { own, putClient, accept } = await lab();
    expect(await own.json('/api')).toEqual({ CN: 'one' });
    await putClient('two');
    accept('two');
    expect(await own.json('/api')).toEqual({ CN: 'two' });
    expect(await Promise.all([own.json('/api'), own.json('/apis')])).toEqual([{ CN: 'two' }, { CN: 'two' }]);
  });

  test('a rotated CA is trusted after ten seconds', async () => {
    const { own, clock, rotateCA } = await lab();
    expect(await own.json('/api')).toEqual({ CN: 'one' });
    await rotateCA();
    await clock.advance(10_001);
    expect(await own.json('/api')).toEqual({ CN: 'one' });
  });

  test('an incomplete pair of certificate files leaves the old client certificate in use', async () => {
    const { own, clock, put } = await lab();
    expect(await own.json('/api')).toEqual({ CN: 'one' });
    put('tls.key', 'half');
    await clock.advance(10_001);
    expect(await own.json('/api')).toEqual({ CN: 'one' });
  });

  test('an incomplete kubeconfig causes a KubeError until the file is complete', async () => {
    const { own, put, putClient, accept } = await lab();
    expect(await own.json('/api')).toEqual({ CN: 'one' });
    const whole = readFileSync(join(directory, 'config'), 'utf8');
    put('config', whole.slice(0, 20));
    await putClient('two');
    accept('two');
    const failed = { name: 'KubeError', code: 0 };
    await expect(own.json('/api')).rejects.toMatchObject(failed);
    await expect(own.json('/api')).rejects.toMatchObject(failed);
    put('config', whole);
    expect(await own.json('/api')).toEqual({ CN: 'two' });
  });
});

test('a caller cannot replace the credential of the server, whatever the case of the header name', async () => {
  const kube = new FakeKubeApiserver();
  const own = await clientOf('opaque', await kube.listen());
  try {
    await own.json('/api', { headers: { authorization: 'Bearer other', AUTHORIZATION: 'Bearer another' } });
    expect(kube.seen.map(({ headers }) => headers.get('authorization'))).toEqual([['Bearer opaque']]);
  } finally {
    await own.close();
    kube.close();
  }
});
