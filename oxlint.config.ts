import { defineConfig } from 'oxlint';

/** Layers of src/, lowest first. A folder imports from lower layers only, never from its own or higher ones. */
const layers = [
  ['runtime'],
  ['config'],
  ['cluster'],
  ['tokens', 'tls', 'tracing'],
  ['accounts'],
  ['auth', 'audit'],
  ['http'],
  ['apimachinery'],
  ['oauth', 'resources', 'iam', 'logs', 'gateway', 'docs'],
  ['server'],
  ['cli'],
  ['main'],
];

/** Folders that may import a library. */
const importers: Readonly<Record<string, readonly string[]>> = {
  '@kubernetes/client-node': ['cluster'],
  undici: ['runtime'],
  jsonwebtoken: ['tokens'],
  passport: ['auth'],
  'passport-http-bearer': ['auth'],
  winston: ['runtime'],
  'winston-transport': ['runtime'],
  'prom-client': ['runtime'],
  'tar-stream': ['runtime'],
  '@peculiar/x509': ['tls'],
  bcrypt: ['accounts'],
  ldapts: ['accounts'],
  '@opentelemetry': ['tracing'],
  'openid-client': ['accounts'],
  '@node-rs/argon2': ['accounts'],
  yaml: ['config'],
  'fastest-levenshtein': ['config'],
  zod: ['config', 'cluster', 'http', 'docs'],
};

const useCheckingClient = 'Send requests with test/client, which checks each byte of a response.';
const clientsOf = (name: string, ...importNames: readonly string[]): object => ({
  name,
  importNames: ['default', ...importNames],
  message: useCheckingClient,
});

/** HTTP clients of Node.js and undici. Servers and types are not restricted. */
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
            paths: Object.entries(importers)
              .filter(([, folders]) => !folders.includes(part))
              .map(([name, folders]) => ({
                name,
                message: `Import this library in src/${folders.join(' and src/')} only.`,
              })),
            patterns: [
              ...Object.entries(importers)
                .filter(([, folders]) => !folders.includes(part))
                .map(([name]) => ({
                  group: [`${name}/**`],
                  message: 'This folder must not import the library; importers in oxlint.config.ts lists which may.',
                })),
              {
                group: above.map((name) => (isFile(name) ? `**/${name}.ts` : `**/${name}/**`)),
                message: 'Import from lower layers only; oxlint.config.ts lists the layers.',
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
  // test/clients/generated is checked together with the code that it is compiled with (test/labs/integration/generated.ts).
  ignorePatterns: ['dist/', 'node_modules/', '.cluster/', 'test/clients/generated/'],
  rules: {
    eqeqeq: 'error',
    'prefer-const': 'error',
    'no-console': 'error',
    'import/no-cycle': 'error',
    'import/no-unassigned-import': 'off',
    // passport and Express use callbacks.
    'promise/no-callback-in-promise': 'off',
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/await-thenable': 'error',
    // Responses of kube-apiserver are trusted to have the shape of its API.
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
      // Runs in browsers, which can load no other modules.
      files: ['src/docs/explorer/browser/**'],
      env: { node: false, browser: true },
      rules: {
        'no-restricted-imports': [
          'error',
          {
            patterns: [
              {
                regex: '^(?!\\./[^/]+$)',
                message: 'Import modules of this folder only: no others are served to browsers.',
              },
            ],
          },
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
    // Plain JavaScript lacks the types of Node.js.
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
        // Upgrade connections, which test/client does not support.
        'test/conformance/streams.test.ts',
        'test/conformance/web-socket.test.ts',
        'test/integration/web-socket.test.ts',
        'test/labs/integration/rights/transport.ts',
        // Send malformed requests, and read trailers and aborted connections.
        'test/conformance/gateway.test.ts',
        'test/integration/malformed.test.ts',
        // Measures the memory that the server keeps for hostile strings.
        'test/conformance/hostile-strings.test.ts',
      ],
      rules: { 'no-restricted-imports': 'off' },
    },
    {
      files: [
        // Call log stores, etcd and a program that waits for an authorization code, not this server.
        'test/conformance/log-store/**',
        'test/labs/integration/control-plane.ts',
        'test/labs/integration/person.ts',
        // Tests fetch itself.
        'test/integration/tokens.test.ts',
      ],
      rules: { 'no-restricted-globals': 'off' },
    },
    {
      files: ['test/**'],
      // The names of shared assertion functions start with expect.
      rules: {
        'jest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*'] }],
        'jest/no-restricted-jest-methods': ['error', { retryTimes: 'Do not retry flaky tests; find the cause.' }],
        'no-restricted-properties': [
          'error',
          { object: 'test', property: 'failing', message: 'Do not mark tests as failing; fix the cause.' },
        ],
      },
    },
  ],
});
