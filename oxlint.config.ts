import { defineConfig } from 'oxlint';

/** The layers of src/, lowest first. A part imports from lower layers only: never up, never sideways. */
const layers = [
  ['runtime'],
  ['config'],
  ['cluster'],
  ['tokens', 'tls'],
  ['accounts'],
  ['auth', 'audit'],
  ['http'],
  ['apimachinery'],
  ['oauth', 'resources', 'iam', 'logs', 'gateway', 'docs'],
  ['server'],
  ['cli'],
  ['main'],
];

/** One library, one door. */
const doors: Readonly<Record<string, readonly string[]>> = {
  '@kubernetes/client-node': ['cluster'],
  undici: ['runtime'],
  jsonwebtoken: ['tokens'],
  passport: ['auth'],
  'passport-http-bearer': ['auth'],
  winston: ['runtime'],
  'winston-transport': ['runtime'],
  'prom-client': ['runtime'],
  '@peculiar/x509': ['tls'],
  bcrypt: ['accounts'],
  ldapts: ['accounts'],
  'openid-client': ['accounts'],
  '@node-rs/argon2': ['accounts'],
  yaml: ['config'],
  'fastest-levenshtein': ['config'],
  zod: ['config', 'cluster', 'http', 'docs'],
};

const useCheckingClient = 'Send requests by test/client, which checks each byte of a response.';
const clientsOf = (name: string, ...importNames: readonly string[]): object => ({
  name,
  importNames: ['default', ...importNames],
  message: useCheckingClient,
});

/** The clients of Node and undici, whose servers and types are not restricted. */
const clients = [
  clientsOf('node:http', 'request', 'get', 'Agent', 'globalAgent'),
  clientsOf('node:https', 'request', 'get', 'Agent', 'globalAgent'),
  clientsOf('node:http2', 'connect'),
  { name: 'undici', message: useCheckingClient },
];

const isFile = (part: string): boolean => ['server', 'main'].includes(part);

const overrides = layers.flatMap((parts, level) =>
  parts.map((part) => {
    const above = layers.flatMap((others, other) => (other < level ? [] : others.filter((name) => name !== part)));
    return {
      files: [isFile(part) ? `src/${part}.ts` : `src/${part}/**`],
      rules: {
        'no-restricted-imports': [
          'error',
          {
            paths: Object.entries(doors)
              .filter(([, rooms]) => !rooms.includes(part))
              .map(([name, rooms]) => ({
                name,
                message: `One library, one door: import it in src/${rooms.join(' and src/')} only.`,
              })),
            patterns: [
              ...Object.entries(doors)
                .filter(([, rooms]) => !rooms.includes(part))
                .map(([name]) => ({ group: [`${name}/**`], message: 'One library, one door, also to its parts.' })),
              {
                group: above.map((name) => (isFile(name) ? `**/${name}.ts` : `**/${name}/**`)),
                message: 'Imports point down only; the layers stand in oxlint.config.ts.',
              },
            ],
          },
        ],
      },
    } as const;
  }),
);

export default defineConfig({
  plugins: ['typescript', 'import', 'unicorn', 'promise', 'jest'],
  categories: { correctness: 'error', suspicious: 'error' },
  options: { typeAware: true },
  env: { node: true },
  // What is there is checked beside what it uses, which is generated (test/labs/integration/generated.ts).
  ignorePatterns: ['dist/', 'node_modules/', '.cluster/', 'test/clients/generated/'],
  rules: {
    eqeqeq: 'error',
    'prefer-const': 'error',
    'no-console': 'error',
    'import/no-cycle': 'error',
    'import/no-unassigned-import': 'off',
    // passport's and Express' own way.
    'promise/no-callback-in-promise': 'off',
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/await-thenable': 'error',
    // What kube-apiserver sends is believed to have its own API's shape.
    'typescript/no-unsafe-type-assertion': 'off',
    'typescript/no-unsafe-argument': 'error',
    'typescript/no-unsafe-assignment': 'error',
    'typescript/no-unsafe-call': 'error',
    'typescript/no-unsafe-member-access': 'error',
    'typescript/no-unsafe-return': 'error',
    'typescript/switch-exhaustiveness-check': 'error',
  },
  overrides: [
    ...overrides,
    {
      // It runs in browsers, which get nothing else.
      files: ['src/docs/explorer/browser/**'],
      env: { node: false, browser: true },
      rules: {
        'no-restricted-imports': [
          'error',
          { patterns: [{ regex: '^(?!\\./[^/]+$)', message: 'Only what lies beside it is served.' }] },
        ],
      },
    },
    {
      files: ['src/!(runtime)/**', 'src/runtime/!(time.ts)'],
      rules: {
        'no-restricted-properties': [
          'error',
          { object: 'Date', property: 'parse', message: 'src/runtime/time.ts parses RFC 3339 times.' },
        ],
      },
    },
    { files: ['hack/**', 'test/**', 'src/cli/**'], rules: { 'no-console': 'off' } },
    // Plain JavaScript has no types of Node.
    { files: ['hack/**/*.mjs'], rules: { 'typescript/no-unsafe-member-access': 'off' } },
    {
      files: ['test/conformance/**', 'test/integration/**', 'test/labs/conformance/**', 'test/labs/integration/**'],
      rules: {
        'no-restricted-imports': ['error', { paths: clients }],
        'no-restricted-globals': ['error', { name: 'fetch', message: useCheckingClient }],
      },
    },
    {
      files: [
        // They upgrade connections, which the checking client does not.
        'test/conformance/streams.test.ts',
        'test/conformance/web-socket.test.ts',
        'test/integration/web-socket.test.ts',
        'test/labs/integration/rights/transport.ts',
        // They send broken requests, and read trailers and connections that are broken off.
        'test/conformance/gateway.test.ts',
        'test/integration/malformed.test.ts',
        // It measures what the server keeps of hostile strings.
        'test/conformance/hostile-strings.test.ts',
      ],
      rules: { 'no-restricted-imports': 'off' },
    },
    {
      files: [
        // They call log stores, etcd and a program that waits for a code, not this server.
        'test/conformance/log-store/**',
        'test/labs/integration/control-plane.ts',
        'test/labs/integration/person.ts',
        // It tests fetch itself.
        'test/integration/tokens.test.ts',
      ],
      rules: { 'no-restricted-globals': 'off' },
    },
    {
      files: ['test/**'],
      // Assertions that several tests share are functions called expectSo.
      rules: {
        'jest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*'] }],
        'jest/no-restricted-jest-methods': ['error', { retryTimes: 'a test that fails at times has a cause: find it' }],
        'no-restricted-properties': [
          'error',
          { object: 'test', property: 'failing', message: 'a test that fails is not a test: fix the cause' },
        ],
      },
    },
  ],
});
