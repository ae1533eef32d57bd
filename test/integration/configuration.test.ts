/**
 * The cluster configuration object (docs/reference/configuration.md). Changes apply within a second. An invalid object
 * is rejected as a whole, and the last valid configuration stays in effect.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { release } from '../../hack/run/chart.ts';
import { configure, readText, writeText, type Configuration } from '../labs/integration/configure.ts';
import { readLog } from '../labs/integration/log.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, nodesPath } from '../labs/integration/http.ts';
import { create, get, kube, patch, releasePath, remove, type KubeObject } from '../labs/integration/kube.ts';
import { kubectl, succeed } from '../labs/integration/kubectl.ts';
import { lab } from '../labs/integration/lab.ts';
import {
  adminToken,
  login,
  passwordForm,
  postForm,
  refreshForm,
  tokens,
  type Tokens,
} from '../labs/integration/login.ts';
import { carolSecret, passwords, referredSecret } from '../labs/integration/people.ts';
import { remember } from '../labs/integration/secrets.ts';
import { replicaLogs, replicaProcesses, startReplica, stopReplica } from '../labs/integration/servers.ts';
import { platformApiserver } from '../labs/integration/cli.ts';

const gateways = (): string[] => [gateway(0), gateway(1)];
const configMap = `${releasePath}/configmaps/platform-config`;

/** Reverts changes of the tests, the latest first. */
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (let task = undo.pop(); task !== undefined; task = undo.pop()) await task();
});

async function change(by: Parameters<typeof configure>[0]): Promise<void> {
  undo.push(await configure(by));
}

/** Adds a user with alice's password and a unique e-mail address. */
const addUser = (username: string, more: object = {}): Promise<void> =>
  change(({ authentication: { users } }) => {
    const alice = users.find((user) => user.username === 'alice');
    users.push({ ...alice, email: `${username}@example.com`, username, ...more });
  });

const user = ({ authentication: { users } }: Configuration, username: string): Record<string, unknown> =>
  users.find((one) => one.username === username) as Record<string, unknown>;

const mayLogIn = async (username: string, password: string = passwords.alice): Promise<number[]> =>
  Promise.all(gateways().map(async (base) => (await postForm(passwordForm(username, password), { base })).status));

/** Returns the statuses of requests with the access token at both replicas, and of a refresh with the refresh token. */
async function statusesOf({
  access_token: token,
  refresh_token: refresh,
}: Tokens): Promise<{ bearer: number[]; refresh: number }> {
  const bearer = await Promise.all(gateways().map(async (base) => (await call(`${base}/kapis`, { token })).status));
  return { bearer, refresh: (await postForm(refreshForm(refresh))).status };
}
const ended = { bearer: [401, 401], refresh: 400 };

describe('a change of the ConfigMap', () => {
  test('a change of the ConfigMap adds a user who can log in on both replicas without a restart', async () => {
    const processes = replicaProcesses().map((process) => process?.pid);
    expect(await mayLogIn('new-user')).toEqual([400, 400]);
    await addUser('new-user');
    expect(await mayLogIn('new-user')).toEqual([200, 200]);
    expect(replicaProcesses().map((process) => process?.pid)).toEqual(processes);
  });

  test('a change of the ConfigMap keeps the sessions of unaffected users', async () => {
    const { access_token: token } = await login('alice');
    await addUser('somebody-else');
    expect((await call(`${gateway(1)}/kapis`, { token })).status).toBe(200);
  });

  test.each<[string, (configuration: Configuration) => void]>([
    [
      'is removed',
      ({ authentication }) => {
        authentication.users = authentication.users.filter(({ username }) => username !== 'leaving');
      },
    ],
    [
      'is disabled',
      (configuration) => {
        user(configuration, 'leaving')['state'] = 'Disabled';
      },
    ],
    [
      'gets a new password',
      (configuration) => {
        user(configuration, 'leaving')['passwordHash'] = user(configuration, 'dave')['passwordHash'];
      },
    ],
  ])('a user who %s by a change of the ConfigMap loses all sessions and tokens', async (_, by) => {
    await addUser('leaving');
    const [session, refreshed] = [
      await login('leaving', undefined, passwords.alice),
      await login('leaving', gateway(1), passwords.alice),
    ];
    expect((await statusesOf(refreshed)).bearer).toEqual([200, 200]);
    await change(by);
    expect(await statusesOf(session)).toEqual(ended);
    expect(await mayLogIn('leaving')).toEqual([400, 400]);
  });

  test('changed groups in the ConfigMap apply to tokens already issued', async () => {
    await addUser('promoted', { groups: [] });
    const { access_token: token } = await login('promoted', undefined, passwords.alice);
    const may = (): Promise<number[]> =>
      Promise.all(gateways().map(async (base) => (await call(`${base}${nodesPath}?limit=0`, { token })).status));
    expect(await may()).toEqual([403, 403]);
    await change((configuration) => {
      user(configuration, 'promoted')['groups'] = ['platform:admins'];
    });
    expect(await may()).toEqual([200, 200]);
    await undo.pop()?.();
    expect(await may()).toEqual([403, 403]);
  });

  test('a client added to the ConfigMap can request tokens; removing the client revokes its tokens', async () => {
    const client = { client_id: 'short-lived', client_secret: 'no longer than a test 0417' };
    const form = { ...passwordForm('alice'), ...client };
    expect((await postForm(form)).status).toBe(401);
    await change(({ authentication }) => {
      authentication.clients.push({ name: client.client_id, secret: client.client_secret });
    });
    const given = await tokens(form, gateway(1));
    expect((await statusesOf(given)).bearer).toEqual([200, 200]);
    await undo.pop()?.();
    expect((await statusesOf(given)).bearer).toEqual([401, 401]);
    expect((await postForm(form)).status).toBe(401);
  });

  test('a change of the ConfigMap can be applied from a file with kubectl', async () => {
    const text = await readText();
    undo.push(() => writeText(text));
    const configuration = parse(text) as Configuration;
    configuration.authentication.users.push({ ...user(configuration, 'alice'), username: 'by-kubectl' });
    const file = join(lab().dir, 'platform.yaml');
    writeFileSync(file, stringify(configuration));
    const made = await succeed(
      kubectl,
      '-n',
      release.namespace,
      'create',
      'configmap',
      'platform-config',
      `--from-file=${file}`,
      '--dry-run=client',
      '-o',
      'json',
    );
    writeFileSync(file, made);
    await succeed(kubectl, 'replace', '-f', file);
    await eventually('the user can log in', async () => expect(await mayLogIn('by-kubectl')).toEqual([200, 200]));
  });
});

const writeSecret = (name: string, key: string, value: string | null): Promise<unknown> =>
  patch(`${releasePath}/secrets/${name}`, {
    data: { [key]: value === null ? null : Buffer.from(value).toString('base64') },
  });
const readSecret = async (name: string, key: string): Promise<string> =>
  Buffer.from(
    (await get<KubeObject & { data: Record<string, string> }>(`${releasePath}/secrets/${name}`)).data[key] ?? '',
    'base64',
  ).toString();

const statusOfClient = async (secret: string): Promise<number> =>
  (await postForm({ ...passwordForm('alice'), client_id: 'referred', client_secret: secret })).status;

// The hash of carol's password is in a Secret, and so is the secret of the client `referred`.
describe('a Secret that the configuration refers to', () => {
  test("a password that is changed in a referenced Secret takes effect without a restart and revokes the user's sessions", async () => {
    const before = await readSecret(carolSecret, 'hash');
    undo.push(async () => {
      await writeSecret(carolSecret, 'hash', before);
      await eventually('carol can log in again', async () => login('carol'));
    });
    const session = await login('carol');
    const password = 'carol sails no more, 22:40';
    remember(password);
    const { stdout } = await platformApiserver(['hash-password'], password);
    await writeSecret(carolSecret, 'hash', stdout);
    await eventually('the new password is accepted', async () =>
      expect(await mayLogIn('carol', password)).toEqual([200, 200]),
    );
    expect(await mayLogIn('carol', passwords.carol)).toEqual([400, 400]);
    expect(await statusesOf(session)).toEqual(ended);
  });

  test('logins are rejected while the key of a configured Secret is missing, and accepted when the key is added again', async () => {
    const before = await readSecret(carolSecret, 'hash');
    const session = await login('carol');
    await writeSecret(carolSecret, 'hash', null);
    await eventually('logins are rejected', async () => expect((await statusesOf(session)).bearer).toEqual([401, 401]));
    expect((await postForm(passwordForm('carol'))).status).toBe(400);
    const token = await adminToken();
    const readyz = async (base: string): Promise<string> => (await call(`${base}/readyz?verbose`, { token })).text;
    const problem = `(carol).passwordRef: Secret "${carolSecret}" has no key "hash"`;
    for (const base of gateways()) {
      expect(await readyz(base)).toContain(problem);
      expect((await call(`${base}/metrics`, { token })).text).toMatch(/^platform_apiserver_configuration_problems 1$/m);
    }
    await eventually('there is an Event', async () => {
      const { items } = await get<{ items: { reason: string; message: string }[] }>(`${releasePath}/events`);
      const event = items.filter(({ reason }) => reason === 'ConfigurationIncomplete');
      expect(event.map(({ message }) => message)).toContainEqual(expect.stringContaining(problem));
    });
    await writeSecret(carolSecret, 'hash', before);
    await eventually('carol can log in again', async () =>
      expect(await mayLogIn('carol', passwords.carol)).toEqual([200, 200]),
    );
    for (const base of gateways()) expect(await readyz(base)).toContain('[+]configuration ok\n');
  });

  test('a client secret that is changed in a referenced Secret takes effect without a restart', async () => {
    const before = await readSecret(referredSecret, 'secret');
    const secret = 'another secret for the client 3391';
    undo.push(async () => {
      await writeSecret(referredSecret, 'secret', before);
      await eventually('the old secret is accepted', async () => expect(await statusOfClient(before)).toBe(200));
    });
    await writeSecret(referredSecret, 'secret', secret);
    await eventually('the new secret is accepted', async () => expect(await statusOfClient(secret)).toBe(200));
    expect(await statusOfClient(before)).toBe(401);
  });
});

/** Writes a configuration with the changes of `by`, and returns the problems that both replicas reported. */
async function refuse(by: (configuration: Configuration) => void): Promise<readonly string[]> {
  const text = await readText();
  undo.push(() => writeText(text));
  const configuration = parse(text) as Configuration;
  by(configuration);
  return await writeText(stringify(configuration));
}

const breaks = (configuration: Configuration): void => {
  const { authentication } = configuration;
  authentication['issuer'] = 'http://insecure.example.com';
  authentication.users.push({ username: 'Capital', passwordHash: 'plain' });
  authentication.users = authentication.users.filter(({ username }) => username !== 'bob');
  configuration['surprise'] = true;
};
const broken = [
  'authentication.issuer',
  'authentication.users[4] (Capital).username',
  'authentication.users[4] (Capital).passwordHash',
  'surprise',
];

const pathsOf = (problems: readonly string[]): string[] => problems.map((problem) => problem.split(': ')[0] ?? '');

describe('an invalid configuration', () => {
  test('an invalid configuration is rejected as a whole, with every problem and its path', async () => {
    const problems = await refuse(breaks);
    expect(pathsOf(problems).toSorted()).toEqual(broken.toSorted());
    // No part of the configuration takes effect, not even a valid one.
    expect(await mayLogIn('bob', passwords.bob)).toEqual([200, 200]);
    expect((await postForm(passwordForm('Capital', 'plain'))).status).toBe(400);
  });

  test('an invalid configuration is reported by an Event on the ConfigMap, by readyz and by a metric', async () => {
    await refuse(breaks);
    const { uid } = (await get(configMap)).metadata;
    const event = await eventually('there is an Event', async () => {
      const { items } = await get<{ items: { reason: string; type: string; message: string }[] }>(
        `${releasePath}/events?fieldSelector=involvedObject.uid=${uid}`,
      );
      const found = items.findLast(({ reason }) => reason === 'ConfigurationRefused');
      if (found === undefined) throw new Error('no Event');
      return found;
    });
    expect(event.type).toBe('Warning');
    const token = await adminToken();
    for (const base of gateways()) {
      const { status, text } = await call(`${base}/readyz?verbose`, { token });
      expect(status).toBe(200);
      for (const path of broken) {
        expect(text).toContain(`${path}: `);
        expect(event.message).toContain(`${path}: `);
      }
      expect((await call(`${base}/metrics`, { token })).text).toMatch(/^platform_apiserver_configuration_problems 4$/m);
    }
    await undo.pop()?.();
    for (const base of gateways()) {
      expect((await call(`${base}/readyz?verbose`, { token })).text).toContain('[+]configuration ok\n');
      expect((await call(`${base}/metrics`, { token })).text).toMatch(/^platform_apiserver_configuration_problems 0$/m);
    }
  });

  test.each<[string, string]>([
    ['not YAML', 'a: ['],
    ['a list', '- a\n'],
    ['empty', ''],
    ['of another kind', 'apiVersion: v1\nkind: ConfigMap\n'],
  ])(
    'an invalid configuration that is %s is rejected, and the last valid configuration stays in effect',
    async (_, text) => {
      const before = await readText();
      undo.push(() => writeText(before));
      expect(await writeText(text)).not.toEqual([]);
      expect(await mayLogIn('bob', passwords.bob)).toEqual([200, 200]);
    },
  );

  test('a server restarted with an invalid configuration uses the last valid configuration, is ready and reports a warning', async () => {
    await addUser('accepted-last');
    expect(await mayLogIn('accepted-last')).toEqual([200, 200]);
    const session = await login('accepted-last', undefined, passwords.alice);
    await refuse(breaks);
    await stopReplica(1);
    await startReplica(1);
    expect(await mayLogIn('accepted-last')).toEqual([200, 200]);
    expect((await statusesOf(session)).bearer).toEqual([200, 200]);
    const { status, text } = await call(`${gateway(1)}/readyz?verbose`, { token: await adminToken() });
    expect(status).toBe(200);
    expect(text).toMatch(/^\[\+\]configuration ok \(warning: .*surprise: /m);
    expect(
      readLog(replicaLogs()[1] ?? '')
        .filter(({ level }) => level === 'warn')
        .map(({ message }) => message),
    ).toContain('started with the last accepted configuration');
  });
});

describe('a deleted ConfigMap', () => {
  test('a deleted ConfigMap leaves the last valid configuration in effect, even after a restart, until the ConfigMap is created again', async () => {
    await addUser('survivor');
    const { metadata, data } = await get<KubeObject & { data: object }>(configMap);
    const { name, labels, annotations } = metadata;
    await remove(configMap);
    undo.push(async () => {
      await kube()
        .json(configMap)
        .catch(() => create(`${releasePath}/configmaps`, { metadata: { name, labels, annotations }, data }));
    });
    const token = await adminToken();
    for (const base of gateways())
      await eventually('the deletion is reported', async () => {
        const { text } = await call(`${base}/readyz?verbose`, { token });
        expect(text).toContain('[+]configuration ok (warning: ');
        expect(text).toContain('platform-config');
      });
    expect(await mayLogIn('survivor')).toEqual([200, 200]);
    await stopReplica(1);
    await startReplica(1);
    expect(await mayLogIn('survivor')).toEqual([200, 200]);
    await undo.pop()?.();
    for (const base of gateways())
      await eventually('the configuration is ok', async () =>
        expect((await call(`${base}/readyz?verbose`, { token })).text).toContain('[+]configuration ok\n'),
      );
  });
});
