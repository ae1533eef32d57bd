/** Clients that public generators create from the published descriptions, and the types of their results. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { output } from '../../hack/cluster/exec.ts';
import { build, checkTypes, generate, type Generated, type Language } from '../labs/integration/generated.ts';
import { secureGateway } from '../labs/integration/http.ts';
import { create } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { runningPods, startLogNode, type LogNode } from '../labs/integration/log-node.ts';
import { passwords } from '../labs/integration/people.ts';
import { addUsers } from '../labs/integration/users.ts';

const namespace = 'generated-clients';
const rightless = 'generated-rightless';

let node: LogNode;
let removeUsers: () => Promise<void>;
beforeAll(async () => {
  removeUsers = await addUsers({ [rightless]: [] });
  node = await startLogNode({ [namespace]: ['web'] });
  await create(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name: 'web' },
    spec: { nodeName: node.name, containers: [{ name: 'web', image: 'none' }] },
  });
  await runningPods(namespace, 1);
  const now = Date.now();
  for (const [index, log] of ['the first', 'the second', 'the third'].entries())
    node.write(namespace, 'web', { time: new Date(now + index), log });
});
afterAll(async () => {
  await node.stop();
  await removeUsers();
});

/** Differences by language in how the same result is reported. */
const seenBy = (language: string): object => ({
  'wrong password': [400, 'invalid_grant'],
  nodes: {
    page: [['node-3', 'node-4'], 8],
    selected: [['node-1', 'linux', null]],
  },
  node: {
    found: ['Node', 'node-1', 'True', 'linux'],
    missing: [404, 'NotFound', 'nodes', 'no-such'],
  },
  forbidden: [403, 'Forbidden', 'nodes', null],
  user: {
    made: ['One', `made-by-${language}@example.com`, ['keepers'], 'Active'],
    patched: ['Two', null],
    again: [409, 'AlreadyExists', 'users', `made-by-${language}`],
    all: [[`made-by-${language}`], 1],
    gone: 'Status',
  },
  'who am I': ['admin', ['platform:admins', 'system:authenticated'], false],
  logs: {
    query: [1, [['web', 'the second']]],
    statistics: [1, 3],
    wrong: [null, 'BadRequest', 'start_time'],
  },
  'custom resource': {
    made: ['User', 'Three', 'Active'],
    listed: [`custom-by-${language}`],
    patched: 'Disabled',
    gone: 'Success',
    missing: [404, 'NotFound', 'users', `custom-by-${language}`],
  },
});

const swagger = {
  page: [['node-3', 'node-4'], 8],
  found: ['Node', 'linux'],
  missing: [404, 'NotFound', 'nodes', 'no-such'],
  'wrong password': [400, 'invalid_grant'],
};

describe.each<[Language, object, RegExp]>([
  ['typescript', {}, /^$/],
  ['python', {}, /^Unsupported content type application\/(?:apply-patch\+)?yaml$/],
  ['go', { swagger }, /^$/],
])('a client generated in %s', (language, more, warning) => {
  let made: Generated;

  test('the client generator prints no warnings about the OpenAPI description', async () => {
    made = await generate(language);
    const complaints = made.printed
      .split('\n')
      .filter((line) => /unsupported|unable|invalid|duplicate|skip/i.test(line));
    expect(complaints.filter((line) => !warning.test(line))).toEqual([]);
  }, 300_000);

  test('a generated client gets responses that match the OpenAPI description', async () => {
    const [program, ...args] = await build(language, made);
    const input = JSON.stringify({
      username: 'admin',
      password: lab().adminPassword,
      rightless,
      rightlessPassword: passwords.alice,
      namespace,
    });
    const trust = { SSL_CERT_FILE: lab().authorityFile, NODE_EXTRA_CA_CERTS: lab().authorityFile };
    const seen = await output(program, [...args, secureGateway()], { input, env: { ...made.env, ...trust } });
    expect(JSON.parse(seen)).toEqual({ ...seenBy(language), ...more });
  }, 300_000);
});

describe('the generated types in TypeScript', () => {
  test('a program that follows the OpenAPI description compiles with the generated TypeScript types', async () => {
    const { folder } = await generate('typescript');
    expect(await checkTypes(folder)).toMatchObject({ code: 0, stdout: '' });
  });

  test.each([
    ['the description renames a property', '"totalItems"', '"total"', /'totalItems' does not exist/],
    ['the description renames a parameter', '"name":"sortBy"', '"name":"sort"', /'sortBy' does not exist/],
    [
      'the description renames a path',
      '/v1alpha3/nodes/{name}"',
      '/v1alpha3/node/{name}"',
      /v1alpha3\/nodes\/\{name\}/,
    ],
    ['the description adds a parameter', '"name":"names"', '"name":"sort"', /Unused '@ts-expect-error'/],
  ])('a program fails to compile with the generated TypeScript types when %s', async (_, from, to, problem) => {
    const { folder } = await generate('typescript', (text) => {
      expect(text).toContain(from);
      return text.replaceAll(from, to);
    });
    const { code, stdout } = await checkTypes(folder);
    expect(code).not.toBe(0);
    expect(stdout).toMatch(problem);
  });
});
