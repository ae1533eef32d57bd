/** Examples of the documents, executed as a reader pastes them. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { globSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { execute } from '../../hack/cluster/exec.ts';
import { writeEnv } from '../../hack/run/env-file.ts';
import { configure, type Configuration } from '../labs/integration/configure.ts';
import { blocksIn, blocksOf, documentOf, docs, outputPattern } from '../labs/integration/documents.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, nodesPath, secureGateway } from '../labs/integration/http.ts';
import { decodeToken } from '../labs/integration/jwt.ts';
import { get, patch, releasePath, type KubeObject } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { login } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';
import { addressIn, visit } from '../labs/integration/person.ts';
import { remember } from '../labs/integration/secrets.ts';
import { startServerPod } from '../labs/integration/server-pod.ts';
import { Shell } from '../labs/integration/shell.ts';
import { createUserWithPassword, loginStatuses, removeUser } from '../labs/integration/user-objects.ts';

test('no document defines a function with the name of a bash builtin', async () => {
  const { stdout } = await execute('bash', ['--norc', '-c', 'compgen -b']);
  const builtins = new Set(stdout.split('\n'));
  const files = globSync('**/*.md', { cwd: docs });
  const given = files.flatMap((file) =>
    blocksIn(file, 'sh').flatMap((block) => [...block.matchAll(/^(\w+)\(\)/gm)].map(([, name = '']) => name)),
  );
  expect(given.length).toBeGreaterThan(3);
  expect(given.filter((name) => builtins.has(name))).toEqual([]);
});

/** Functions and variables that all documents use. */
const [firstSession = ''] = blocksIn('../README.md', 'sh');

let stopServerPod: () => Promise<void>;
beforeAll(async () => {
  stopServerPod = await startServerPod();
});
afterAll(() => stopServerPod());

interface Reader {
  readonly cwd: string;
  readonly shell: Shell;
}

/** Starts a shell in a folder with the files of `make run`, and executes the first session. */
async function startReader(): Promise<Reader> {
  const { dir, authorityFile, kubeconfig, kubectl, adminPassword } = lab();
  const cwd = mkdtempSync(join(dir, 'reader-'));
  mkdirSync(join(cwd, '.cluster'));
  await writeEnv(join(cwd, '.cluster/env'), {
    BASE_URL: gateway(),
    TLS_URL: secureGateway(),
    CA_FILE: authorityFile,
    ADMIN_USERNAME: 'admin',
    ADMIN_PASSWORD: adminPassword,
    KUBECONFIG: kubeconfig,
    KUBECTL: kubectl,
  });
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(cwd, 'node_modules'));
  const shell = new Shell(cwd, { HOME: cwd, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` });
  await shell.run(firstSession);
  return { cwd, shell };
}

/** Returns the expected output of blocks without documented output: anything but an error. */
const success = (): unknown =>
  expect.not.stringMatching(/^\{\s*(?:"error":|"kind":\s*"Status"[^]*"status":\s*"Failure")/m);

/** In these documents, each line after the first block is an independent example. */
describe.each(['reference/api.md', 'guides/logs.md'])('docs/%s', (file) => {
  const [setUp = '', ...blocks] = blocksIn(file, 'sh');
  const examples = [setUp, ...blocks.flatMap((block) => block.trim().split('\n'))];
  let shell: Shell;
  beforeAll(async () => {
    ({ shell } = await startReader());
  });
  afterAll(() => shell.close());

  test('the document has examples', () => {
    expect(examples.length).toBeGreaterThan(4);
  });

  test.each(examples)('the documented example succeeds: %s', async (example) => {
    expect(await shell.run(example)).toEqual(success());
  });
});

/** Converts a documented response to a matcher: `…` matches anything, and the response may have more fields. */
function expectedOf(value: unknown): unknown {
  if (value === '…') return expect.anything();
  if (typeof value === 'string') return value.includes('…') ? expect.stringMatching(outputPattern(value)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(expectedOf);
  return expect.objectContaining(Object.fromEntries(Object.entries(value).map(([key, one]) => [key, expectedOf(one)])));
}

type Values = Readonly<Record<string, string>>;

const publishedKeys = async (): Promise<unknown> => (await call(`${gateway()}/oauth/keys`)).json;

/** Returns a merge patch that replaces all members with the previous members. */
const back = (then: Values, now: Values): Readonly<Record<string, string | null>> => ({
  ...Object.fromEntries(Object.keys(now).map((key) => [key, null])),
  ...then,
});

/** Reverts the rotation of the signing keys that the documented commands start. */
async function keepSigningKeys(): Promise<() => Promise<void>> {
  const path = `${releasePath}/secrets/platform-signing-keys`;
  const read = async (): Promise<{ data: Values; annotations: Values }> => {
    const { data, metadata } = await get<KubeObject & { readonly data: Values }>(path);
    return { data, annotations: metadata.annotations ?? {} };
  };
  const [before, keys] = await Promise.all([read(), publishedKeys()]);
  return async () => {
    const now = await read();
    await patch(path, {
      data: back(before.data, now.data),
      metadata: { annotations: back(before.annotations, now.annotations) },
    });
    await eventually('the previous keys are in use', async () => expect(await publishedKeys()).toEqual(keys));
  };
}

/** Documents whose examples build on each other. The examples delete the objects that they create. */
describe.each(
  [
    '../README.md',
    'guides/accounts.md',
    'guides/tokens.md',
    'guides/install.md',
    'guides/expose.md',
    'guides/console-cookbook.md',
    'guides/kubectl.md',
    'guides/operations.md',
    'guides/monitoring.md',
    'guides/troubleshooting.md',
    'guides/migration.md',
    'reference/errors.md',
    'reference/metrics.md',
  ].map((file) => [join('docs', file), file] as const),
)('%s', (_path, file) => {
  const all = blocksOf(file);
  let reader: Reader;
  let restore: () => Promise<void>;
  let restoreKeys: () => Promise<void>;
  /** Values that the reader copies from the browser. */
  let copied = '';

  beforeAll(async () => {
    // Sets the issuer as `make run` does, so that no cluster DNS is needed.
    restore = await configure(({ authentication }) => {
      authentication['issuer'] = secureGateway();
    });
    restoreKeys = await keepSigningKeys();
    reader = await startReader();
  });
  afterAll(async () => {
    await reader.shell.close();
    await restoreKeys();
    await restore();
  });

  /** Runs an example and visits the addresses that it prints. */
  async function paste(example: string): Promise<string> {
    let visited: Promise<string> | undefined;
    const printed = await reader.shell.run(example, `${copied}\n`, (sofar) => {
      const address = addressIn(sofar);
      if (address !== undefined) visited ??= visit(address);
    });
    copied = (await visited) ?? '';
    remember(...(printed.match(/(?<=")[\w.-]{40,}(?=")/g) ?? []));
    return printed;
  }

  /** Command and expected output of each block. */
  const follow: Readonly<Record<string, (text: string) => Promise<string>>> = {
    sh: paste,
    // A YAML block with the data of the configuration object adds its clients; other blocks are skipped.
    yaml: async (text) => {
      const { data } = parse(text) as { data?: { 'platform.yaml': string } };
      if (data === undefined) return '';
      const { clients } = (parse(data['platform.yaml']) as Pick<Configuration, 'authentication'>).authentication;
      await configure(({ authentication }) => void authentication.clients.push(...clients));
      return '';
    },
    ts: async (text) => {
      writeFileSync(join(reader.cwd, /^\/\/ (\S+\.mts)/.exec(text)?.[1] ?? ''), text);
      return '';
    },
  };
  const steps = all.flatMap(({ language, text }, at) => {
    const next = all[at + 1];
    const response = next?.language === 'json' ? expectedOf(JSON.parse(next.text)) : undefined;
    return language in follow ? [[text.split('\n')[0] ?? '', language, text, response] as const] : [];
  });

  test.each(steps)('the documented command succeeds: %s', async (_, language, text, response) => {
    const seen = await follow[language]?.(text);
    expect(response === undefined ? seen : JSON.parse(seen ?? '')).toEqual(response ?? success());
  });
});

const words = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);

/** Returns the names in the first column of the table of checks. */
function documentedChecks(): readonly string[] {
  const lines = documentOf('reference/metrics.md').split('\n');
  const from = lines.findIndex((line) => line.startsWith('| check ')) + 2;
  return lines.slice(from, lines.indexOf('', from)).flatMap((line) => words(line.split('|')[1]));
}

/** Returns the documented metrics with their labels. */
function documentedMetrics(): Map<string, readonly string[]> {
  const items = documentOf('reference/metrics.md').replaceAll(/\n +/g, ' ');
  const found = items.matchAll(/^- `(\w+)` \((?:counter|gauge|histogram)((?:, `\w+`)*)\):/gm);
  return new Map(Array.from(found, ([, name = '', labels]) => [`platform_apiserver_${name}`, words(labels)]));
}

const send = async (path: string): Promise<string> =>
  (await call(`${gateway()}${path}`, { token: (await login('admin')).access_token })).text;

describe('docs/reference/metrics.md', () => {
  test('docs/reference/metrics.md lists exactly the metrics of the server, with their labels', async () => {
    const text = await send('/metrics');
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);
    const described = documentedMetrics();
    const own = names.filter((name) => !/^(?:process|nodejs)_/.test(name));
    expect(own.toSorted()).toEqual([...described.keys()].toSorted());
    expect(own.length).toBeGreaterThan(8);
    for (const name of own) {
      const labels = [...text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm'))]
        .flatMap(([, all = '']) => [...all.matchAll(/(\w+)=/g)].map(([, label = '']) => label))
        .filter((label) => label !== 'le');
      for (const label of new Set(labels))
        expect([name, described.get(name)]).toEqual([name, expect.arrayContaining([label])]);
    }
  });

  test('docs/reference/metrics.md lists every readiness check', async () => {
    const names = [...(await send('/readyz?verbose')).matchAll(/^\[[+-]\](\S+)/gm)].map(([, name = '']) => name);
    expect(names.toSorted()).toEqual(documentedChecks().toSorted());
  });
});

describe('docs/security.md', () => {
  test('the commands in docs/security.md restore accounts with their passwords but without sessions', async () => {
    const [backup = '', restore = ''] = blocksIn('security.md', 'sh');
    const cwd = mkdtempSync(join(lab().dir, 'backup-'));
    const run = async (script: string): Promise<string> => {
      const env = {
        KUBECONFIG: lab().kubeconfig,
        HOME: cwd,
        TMPDIR: cwd,
        PATH: `${dirname(lab().kubectl)}:${process.env['PATH'] ?? ''}`,
      };
      const { code, stdout, stderr } = await execute('bash', ['--norc', '-euo', 'pipefail', '-c', script], { env });
      expect({ code, stderr }).toMatchObject({ code: 0 });
      return stdout.trim();
    };
    await createUserWithPassword('restored', { groups: ['keepers'] });
    const { access_token: before } = await login('restored', gateway(), passwords.alice);
    const folder = await run(`${backup}\necho "$accounts"`);
    await removeUser('restored');
    await eventually('the user is gone', async () => {
      expect(await loginStatuses('restored')).toEqual([400, 400]);
    });
    await run(`accounts=${folder}\n${restore}`);
    await eventually('the user is back', async () => {
      const { access_token: token } = await login('restored', gateway(), passwords.alice);
      expect(decodeToken(token).claims).toMatchObject({ groups: ['keepers'] });
    });
    expect((await call(`${gateway()}${nodesPath}`, { token: before })).status).toBe(401);
    await removeUser('restored');
  });
});
