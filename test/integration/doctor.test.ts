/** `platform-apiserver doctor` with a real cluster, in which the tests break one object at a time. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { output } from '../../hack/cluster/exec.ts';
import { writeTokenKubeconfig } from '../../hack/cluster/kubeconfig.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { release } from '../../hack/run/chart.ts';
import { apisAvailable, setEndpoints } from '../../hack/run/registration.ts';
import { newAuthority, newLeaf } from '../../src/tls/issuing.ts';
import { platformApiserver } from '../labs/integration/cli.ts';
import { configure, readText, writeText } from '../labs/integration/configure.ts';
import { diagnose, type Diagnosis } from '../labs/integration/doctor.ts';
import {
  create,
  createServiceAccount,
  get,
  kube,
  patch,
  releasePath,
  remove,
  removeServiceAccount,
  serviceAccountToken,
} from '../labs/integration/kube.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { apisPath } from '../labs/integration/http.ts';
import { lab } from '../labs/integration/lab.ts';
import { recordPresence, startExtra } from '../labs/integration/servers.ts';
import { remember } from '../labs/integration/secrets.ts';

const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices';
const apiService = 'v1alpha3.resources.platform.io';
const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';

const replicaEndpoints = () => lab().replicas.map(({ aggregated }) => ({ address: lab().address, port: aggregated }));
const available = (): Promise<void> => apisAvailable(kube(), () => Promise.resolve());

/** Writes a kubeconfig with a token. */
async function kubeconfigOf(name: string, token: string): Promise<string> {
  const [tokenFile, file] = [`${name}.token`, `${name}.kubeconfig`].map((one) => join(lab().dir, one)) as [
    string,
    string,
  ];
  remember(token);
  writeFileSync(tokenFile, token, { mode: 0o600 });
  await writeTokenKubeconfig(file, lab().kubeconfig, tokenFile);
  return file;
}

/** Deletes an object. Returns a function that creates it again. */
async function removed(collection: string, name: string): Promise<() => Promise<unknown>> {
  const { metadata, ...object } = await get(`${collection}/${name}`);
  const { status: _, ...body } = object;
  await remove(`${collection}/${name}`);
  const { labels, annotations } = metadata;
  return () => create(collection, { ...body, metadata: { name, labels, annotations } });
}

/** Patches an object. Returns a function that patches it back. */
const patched = async (path: string, wrong: object, right: object): Promise<() => Promise<unknown>> => {
  await patch(path, wrong);
  return () => patch(path, right);
};

// kube-apiserver may log that the server is unavailable, as it does while a replica is stopped.
beforeAll(async () => {
  recordPresence(lab().dir, 0, false);
  // A busy kube-apiserver can return 503 for some seconds after it reports that the APIService is available.
  await eventually('kube-apiserver forwards requests to the server', async () => {
    for (const path of [apisPath, '/apis/logging.platform.io/v1alpha2']) await kube().json(path);
  });
});
afterAll(async () => {
  await available();
  recordPresence(lab().dir, 0, true);
});

describe('a working release', () => {
  test('the doctor finds no failure, and names the checks that it cannot run from outside a pod', async () => {
    const diagnosis = await diagnose();
    expect(diagnosis.findings('failed')).toEqual([]);
    expect(diagnosis.code).toBe(0);
    expect(diagnosis.findings('warning')).toEqual([]);
    expect(diagnosis.findings('not checked').map(({ check }) => check)).toEqual([
      'DNS',
      'connection',
      'readiness',
      'cache',
    ]);
    for (const name of ['kube-apiserver', 'front proxy', 'configuration', 'secrets', 'rights', 'service', 'endpoints'])
      expect([name, diagnosis.status(name)]).toEqual([name, 'ok']);
    for (const name of ['pods', 'certificate', 'APIServices', 'aggregated API', 'URLs'])
      expect([name, diagnosis.status(name)]).toEqual([name, 'ok']);
  });

  test('the doctor prints one line for each finding, and a summary', async () => {
    const { code, stdout, stderr } = await platformApiserver(['doctor', `--kubeconfig=${lab().kubeconfig}`]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^ok {11}kube-apiserver: Kubernetes v1\.\d+\.\d+\S* at https:\/\//);
    expect(stdout).toMatch(/\n\n0 failed, 0 warning, 4 not checked, 14 ok\n$/);
  });

  test('the doctor rejects a --context that the kubeconfig does not contain', async () => {
    const { code, stderr } = await platformApiserver([
      'doctor',
      `--kubeconfig=${lab().kubeconfig}`,
      '--context=nowhere',
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('no context "nowhere"');
  });

  test('the doctor fails if kube-apiserver cannot be reached, and checks nothing else', async () => {
    const file = join(lab().dir, 'unreachable.kubeconfig');
    writeFileSync(
      file,
      readFileSync(lab().kubeconfig, 'utf8').replace(/server: https:\S+/, 'server: https://127.0.0.1:1'),
    );
    const diagnosis = await diagnose(file);
    expect(diagnosis.code).toBe(1);
    expect(diagnosis.findings('failed')).toEqual([
      expect.objectContaining({ check: 'kube-apiserver', message: expect.stringContaining('cannot be reached') }),
    ]);
    expect(diagnosis.findings('ok')).toEqual([]);
  });

  test('the doctor reports a release that is not installed', async () => {
    const diagnosis = await diagnose(undefined, '--namespace=default');
    expect(diagnosis.code).toBe(1);
    const failures = diagnosis.findings('failed').map(({ check }) => check);
    expect(failures).toEqual(expect.arrayContaining(['configuration', 'pods', 'service', 'APIServices']));
  });
});

describe('the ServiceAccount of helm test', () => {
  let kubeconfig = '';
  let kubectl: (verb: string) => Promise<string>;

  // `helm test` creates these objects and a pod, which the lab cannot run.
  beforeAll(async () => {
    const { helm, kubectl: program } = await programs(['helm', 'kubectl']);
    const access = ['--kubeconfig', lab().kubeconfig];
    const hooks = await output(helm, ['get', 'hooks', release.name, '--namespace', release.namespace, ...access]);
    const list = parse(hooks) as { items: { kind: string }[] };
    const input = JSON.stringify({ ...list, items: list.items.filter(({ kind }) => kind !== 'Pod') });
    kubectl = (verb) => output(program, [verb, '-f', '-', ...access], { input });
    await kubectl('create');
    const { status } = await kube().json<{ status: { token: string } }>(
      `${releasePath}/serviceaccounts/platform-apiserver-doctor/token`,
      { method: 'POST', body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} } },
    );
    kubeconfig = await kubeconfigOf('doctor', status.token);
  });
  afterAll(() => kubectl('delete'));

  test('the doctor with the rights of helm test reports no failure, and does not check Secrets', async () => {
    const diagnosis = await diagnose(kubeconfig);
    expect(diagnosis.findings('failed')).toEqual([]);
    expect(diagnosis.findings('not checked')).toEqual([
      expect.objectContaining({ check: 'secrets', message: 'needs the right to get secrets in platform-system' }),
      expect.objectContaining({ check: 'DNS' }),
      // The endpoints of the lab exist only in EndpointSlices.
      expect.objectContaining({
        check: 'connection',
        message: expect.stringMatching(/^needs Endpoints of the Service/),
      }),
    ]);
    expect(diagnosis.checks.find(({ name }) => name === 'readiness')?.findings).toHaveLength(2);
  });

  test('the doctor runs the credential plugin of the kubeconfig once', async () => {
    const [file, credential, runs] = ['exec.kubeconfig', 'exec.json', 'exec.runs'].map((name) =>
      join(lab().dir, name),
    ) as [string, string, string];
    const apiVersion = 'client.authentication.k8s.io/v1';
    const status = {
      token: readFileSync(join(lab().dir, 'doctor.token'), 'utf8'),
      expirationTimestamp: new Date(Date.now() + 600_000).toISOString(),
    };
    writeFileSync(credential, JSON.stringify({ apiVersion, kind: 'ExecCredential', status }), { mode: 0o600 });
    const args = ['-c', `echo run >> '${runs}'; cat '${credential}'`];
    const exec = { apiVersion, command: 'sh', args, interactiveMode: 'Never' };
    const config = parse(readFileSync(kubeconfig, 'utf8')) as { users: { user: object }[] };
    writeFileSync(file, JSON.stringify({ ...config, users: config.users.map((one) => ({ ...one, user: { exec } })) }));
    expect((await diagnose(file)).status('readiness')).toBe('ok');
    expect(readFileSync(runs, 'utf8')).toBe('run\n');
  });

  test('the doctor reports the configuration warnings of a replica', async () => {
    const restore = await configure(({ authentication }) => {
      authentication.users.push({ username: 'incomplete', passwordRef: { name: 'nowhere', key: 'hash' } });
    });
    const { code, findings } = await diagnose(kubeconfig);
    await restore();
    expect(code).toBe(0);
    expect(findings('warning')).toContainEqual(
      expect.objectContaining({ check: 'readiness', message: expect.stringContaining('Secret "nowhere" not found') }),
    );
  });

  // evidence: support-bundle-without-secrets
  test('a support bundle contains no secret of the release', async () => {
    const secret = 'a client secret in the configuration';
    const { stdout: hash } = await platformApiserver(['hash-password'], 'a password that is hashed');
    remember(secret, hash.trim());
    const restore = await configure(({ authentication }) => {
      authentication.clients.push({ name: 'plain', secret });
      authentication.users.push({ username: 'hashed', passwordHash: hash.trim() });
    });
    const secrets = await get<{ items: { data?: Record<string, string> }[] }>(`${releasePath}/secrets`);
    const values = secrets.items.flatMap(({ data = {} }) =>
      // Certificates are public.
      Object.entries(data).flatMap(([key, value]) =>
        key.endsWith('.crt') ? [] : [value, Buffer.from(value, 'base64').toString('latin1')],
      ),
    );
    const token = readFileSync(join(lab().dir, 'doctor.token'), 'utf8');
    const configured = await readText();
    for (const caller of [lab().kubeconfig, kubeconfig]) {
      const file = join(lab().dir, 'bundle.tar.gz');
      rmSync(file, { force: true });
      await diagnose(caller, `--bundle=${file}`);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      const content = gunzipSync(readFileSync(file)).toString('latin1');
      for (const part of ['doctor.json', 'objects/', 'platform-config', 'kind: PlatformConfiguration'])
        expect(content).toContain(part);
      for (const value of [secret, hash.trim(), token, lab().adminPassword, ...values].filter(
        ({ length }) => length > 8,
      ))
        expect(content.includes(value)).toBe(false);
    }
    expect(configured).toContain(secret);
    await restore();
  });

  test('a support bundle of an invalid configuration does not contain the value of an unknown key', async () => {
    const before = await readText();
    await writeText(`${before}\nsecert: a misplaced secret\n`);
    const file = join(lab().dir, 'invalid.tar.gz');
    const { code } = await diagnose(undefined, `--bundle=${file}`);
    await writeText(before);
    expect(code).toBe(1);
    const content = gunzipSync(readFileSync(file)).toString('latin1');
    expect(content).toContain('secert: ');
    expect(content).not.toContain('misplaced');
  });
});

test('the doctor run by a caller without rights names the missing rights, and reports no failure', async () => {
  await createServiceAccount('powerless');
  const kubeconfig = await kubeconfigOf('powerless', await serviceAccountToken('powerless'));
  const { code, findings } = await diagnose(kubeconfig);
  await removeServiceAccount('powerless');
  expect(code).toBe(0);
  expect(findings('failed')).toEqual([]);
  expect(findings('not checked').map(({ message }) => message)).toEqual(
    expect.arrayContaining([
      'needs the right to get configmaps in kube-system',
      'needs the right to get deployments.apps in platform-system',
      'needs the right to get apiservices.apiregistration.k8s.io',
    ]),
  );
});

describe('a fault', () => {
  interface Fault {
    readonly check: string;
    readonly message: RegExp;
    readonly command: RegExp;
    /** Breaks the release. Returns a function that repairs it. */
    readonly inject: () => Promise<() => Promise<unknown>>;
    /** Checks that depend on this check. */
    readonly blocked?: readonly string[];
  }

  const faults: Readonly<Record<string, Fault>> = {
    'a Service whose selector does not match the pods': {
      check: 'service',
      message: /^the selector of Service platform-system\/platform-apiserver does not match the pods/,
      command: /^helm .*get manifest platform-apiserver \| kubectl .*apply --server-side/,
      inject: () =>
        patched(
          `${releasePath}/services/platform-apiserver`,
          { spec: { selector: { 'app.kubernetes.io/name': 'nothing' } } },
          { spec: { selector: { 'app.kubernetes.io/name': 'platform-apiserver' } } },
        ),
      blocked: ['endpoints', 'connection', 'aggregated API', 'readiness', 'cache'],
    },
    'a Service without ready endpoints': {
      check: 'endpoints',
      message: /^Service platform-system\/platform-apiserver has no ready endpoint/,
      command: /^kubectl .*get endpointslices/,
      inject: async () => {
        await setEndpoints(kube(), []);
        return () => setEndpoints(kube(), replicaEndpoints());
      },
      blocked: ['connection', 'aggregated API'],
    },
    'a missing APIService': {
      check: 'APIServices',
      message: /^APIService v1alpha3\.resources\.platform\.io does not exist/,
      command: /^helm .*get manifest/,
      inject: () => removed(apiServices, apiService),
      blocked: ['aggregated API'],
    },
    'an APIService for another Service': {
      check: 'APIServices',
      message: /names Service platform-system\/other instead of platform-system\/platform-apiserver$/,
      command: /^helm .*get manifest/,
      inject: () =>
        patched(
          `${apiServices}/${apiService}`,
          { spec: { service: { name: 'other' } } },
          { spec: { service: { name: 'platform-apiserver' } } },
        ),
    },
    'an APIService for a port that the Service lacks': {
      check: 'APIServices',
      message: /names port 10251, which Service platform-system\/platform-apiserver does not have$/,
      command: /^helm .*get manifest/,
      inject: () =>
        patched(
          `${apiServices}/${apiService}`,
          { spec: { service: { port: 10_251 } } },
          { spec: { service: { port: 10_250 } } },
        ),
    },
    'a missing ClusterRoleBinding': {
      check: 'rights',
      message:
        /lacks the right to create tokenreviews\.authentication\.k8s\.io and \d+ more rights of ClusterRole platform-apiserver/,
      command: /^helm .*get manifest/,
      inject: () => removed(bindings, 'platform-apiserver'),
    },
    'an invalid configuration': {
      check: 'configuration',
      message: /^ConfigMap platform-system\/platform-config: surprise: /,
      command: /^kubectl .*edit configmap platform-config$/,
      inject: async () => {
        const before = await readText();
        await writeText(`${before}\nsurprise: true\n`);
        return () => writeText(before);
      },
      blocked: ['secrets', 'URLs'],
    },
    'a missing Secret': {
      check: 'secrets',
      message: /\(incomplete\)\.passwordRef: Secret platform-system\/nowhere does not exist$/,
      command: /^kubectl .*get secrets$/,
      inject: () =>
        configure(({ authentication }) => {
          authentication.users.push({ username: 'incomplete', passwordRef: { name: 'nowhere', key: 'hash' } });
        }),
    },
  };

  test.each(Object.entries(faults))(
    'the doctor reports %s with the command that fixes it, and does not run dependent checks',
    async (_, { check, message, command, inject, blocked = [] }) => {
      const repair = await inject();
      let diagnosis: Diagnosis;
      try {
        diagnosis = await diagnose();
      } finally {
        await repair();
      }
      expect(diagnosis.code).toBe(1);
      // kube-apiserver may still report the fault of the previous test.
      const failures = diagnosis.findings('failed').filter((one) => one.check !== 'aggregated API');
      expect(failures).toEqual([
        { check, status: 'failed', message: expect.stringMatching(message), command: expect.stringMatching(command) },
      ]);
      for (const name of blocked) expect([name, diagnosis.status(name)]).toEqual([name, 'not checked']);
    },
  );

  test('the doctor reports a caBundle without the CA that has signed the certificate of the server', async () => {
    const { cert } = await newAuthority(Date.now());
    const caBundle = Buffer.from(cert).toString('base64');
    const path = `${apiServices}/${apiService}`;
    const current = async (): Promise<unknown> => (await get(path)).spec?.['caBundle'];
    const before = await current();
    let diagnosis: Diagnosis;
    // The server restores its CA every 30 seconds, and may do so before the doctor reads it.
    do {
      await patch(path, { spec: { caBundle } });
      diagnosis = await diagnose();
    } while ((await current()) !== caBundle);
    await patch(path, { spec: { caBundle: before } });
    expect(diagnosis.findings('failed')).toEqual([
      expect.objectContaining({
        check: 'APIServices',
        message: expect.stringMatching(
          /^caBundle of APIService v1alpha3\.resources\.platform\.io contains no valid CA that has signed the certificate/,
        ),
      }),
    ]);
    expect(diagnosis.status('aggregated API')).toBe('not checked');
  });

  test('the doctor reports an expired certificate', async () => {
    const year = 365 * 86_400_000;
    const authority = await newAuthority(Date.now() - year);
    const { cert, key } = await newLeaf(
      authority,
      ['platform-apiserver.platform-system.svc'],
      Date.now() - year - 86_400_000,
    );
    const [certFile, keyFile] = ['expired.crt', 'expired.key'].map((name) => join(lab().dir, name)) as [string, string];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key, { mode: 0o600 });
    const extra = await startExtra([`--tls-cert-file=${certFile}`, `--tls-private-key-file=${keyFile}`]);
    await extra.ready();
    await setEndpoints(kube(), [{ address: lab().address, port: extra.ports.aggregated }]);
    const diagnosis = await diagnose();
    await setEndpoints(kube(), replicaEndpoints());
    await extra.stop();
    expect(diagnosis.findings('failed')).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ check: 'certificate', message: expect.stringMatching(/ expired on \d{4}-/) }),
      ]),
    );
    expect(diagnosis.status('aggregated API')).toBe('not checked');
  });
});
