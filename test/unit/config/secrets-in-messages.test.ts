/** Messages about a document do not quote its values, which can be secret; messages go to logs, Events and /readyz. */
// evidence: config-messages-without-secrets
import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatProblem, parseConfiguration } from '../../../src/config/parse.ts';
import { parseWrapped } from '../../../src/cli/wrapped-configuration.ts';
import { fileAccess } from '../../../src/cluster/client/access.ts';

const secret = 'hunter2';

/** Returns the messages about this text as a configuration, as a file for check-config, and as a kubeconfig. */
function messagesOf(text: string): string {
  const parsed = [parseConfiguration(text), parseWrapped(text)];
  const problems = parsed.flatMap((one) => (one.ok ? [] : one.problems.map(formatProblem)));
  return [...problems, kubeconfigProblem(text)].join('\n');
}

function kubeconfigProblem(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  try {
    writeFileSync(join(folder, 'config'), text);
    fileAccess(join(folder, 'config'));
    return '';
  } catch (error) {
    const { message, cause } = error as Error;
    return `${message} ${String(cause)}`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const broken = [
  'secret: *hunter2',
  '<<: *hunter2',
  'a: *x.hunter2',
  'a: !hunter2 [x',
  'a: !!int hunter2\nb: "',
  'a: "\\hunter2"',
  'a: |hunter2\n b',
  'a: &hunter2 &hunter2 y',
  'a: &hunter2 [*hunter2]',
  'a: @hunter2',
  'a: %hunter2',
  '%hunter2\n---\na: "',
  "a: 'x'hunter2",
  '- hunter2\nb: hunter2',
  'a: "hunter2',
  'a: [hunter2',
  'a: b: hunter2',
  '\ta: hunter2',
  'a: hunter2\n---\nb: hunter2',
  '? {a: hunter2}\n: 1',
  'a: !!set {a: hunter2}',
  'a: !!timestamp hunter2',
  `a: ${'['.repeat(4_000)}hunter2`,
  `a: &a [hunter2]\nb: [${'*a,'.repeat(200)}]`,
];

test.each(broken.map((text) => [text.slice(0, 40), text]))(
  'the error for broken YAML does not quote the value: %j',
  (_, text) => {
    const messages = messagesOf(text);
    expect(messages).not.toBe('');
    expect(messages).not.toContain(secret);
  },
);

const document = {
  apiVersion: 'config.platform.io/v1alpha1',
  kind: 'PlatformConfiguration',
  authentication: {
    issuer: 'https://a.example',
    signingAlgorithm: 'ES256',
    accessTokenMaxAge: '2h',
    multipleLogin: true,
    loginLimit: { maxTries: 5 },
    clients: [{ name: 'web', secret: 'x', grantTypes: ['password'], redirectURIs: ['https://b.example/cb'] }],
    users: [{ username: 'erin', passwordRef: { name: 'a', key: 'b' }, state: 'Active', email: 'e@a.example' }],
    identityProviders: [
      {
        name: 'corp',
        type: 'LDAP',
        mapping: 'auto',
        ldap: { url: 'ldaps://a.example', userSearch: { base: 'dc=a', filter: '(uid={username})' } },
      },
      {
        name: 'web',
        type: 'OIDC',
        oidc: {
          issuer: 'https://a.example',
          clientID: 'a',
          clientSecretRef: { name: 'a', key: 'b' },
          scopes: ['openid'],
          claims: { groups: 'groups' },
        },
      },
    ],
  },
  logging: { store: 'opensearch', opensearch: { url: 'https://a.example', index: 'a', tokenRef: { name: 'a' } } },
  gateway: { externalURL: 'https://a.example' },
  requests: { maxInFlight: 1, trustedProxies: ['192.0.2.1'], corsAllowedOrigins: ['https://a.example'] },
  cache: { maxBytes: '1Gi', idle: '10m' },
  audit: {
    policy: { level: 'Metadata', rules: [{ level: 'None', verbs: ['get'] }] },
    log: { path: '-', maxSize: '1Mi' },
  },
};

type Path = readonly (string | number)[];

const pathsOf = (value: unknown, at: Path = []): Path[] =>
  typeof value === 'object' && value !== null
    ? [
        at,
        ...Object.entries(value).flatMap(([key, item]) =>
          pathsOf(item, [...at, Array.isArray(value) ? Number(key) : key]),
        ),
      ]
    : [at];

function withValue(path: Path, change: (value: unknown) => unknown): unknown {
  const copy: Record<string, unknown> = { root: structuredClone(document) };
  const steps = ['root', ...path];
  let at: unknown = copy;
  for (const step of steps.slice(0, -1)) at = (at as Record<string, unknown>)[step];
  const parent = at as Record<string, unknown>;
  const last = steps.at(-1) ?? '';
  parent[last] = change(parent[last]);
  return copy['root'];
}

/** Reports whether the value at this path is a name, which messages quote to identify list entries. */
const isName = (path: Path): boolean => ['username', 'name'].includes(String(path.at(-1)));

test('the error for a misplaced value does not quote the value, whatever its position and form', () => {
  const paths = pathsOf(document).filter((path) => !isName(path));
  const wrong = fc.constantFrom<(value: unknown) => unknown>(
    () => secret,
    () => [secret],
    () => ({ password: secret }),
    () => `${secret}${'x'.repeat(300)}`,
    () => `https://user:${secret}@a.example`,
    () => [{ name: 'a', secret }],
    () => `${secret}\n`,
    () => null,
    () => 5,
    (value) => [value, secret],
    (value) => ({ value, secret }),
  );
  fc.assert(
    fc.property(fc.constantFrom(...paths), wrong, (path, change) => {
      const parsed = parseConfiguration(JSON.stringify(withValue(path, change)));
      const messages = parsed.ok ? [] : parsed.problems.map(formatProblem);
      expect(messages.join('\n')).not.toContain(secret);
    }),
    { numRuns: 500 },
  );
});
