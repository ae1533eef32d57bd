import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { formatProblem, parseConfiguration } from '../../../src/config/parse.ts';

const hour = 3_600_000;

/** A complete configuration document in the form that users write. */
const example = `apiVersion: config.platform.io/v1alpha1
kind: PlatformConfiguration
authentication:
  issuer: https://platform-apiserver.platform-system.svc
  signingAlgorithm: ES256        # or RS256
  keyRotation: 720h
  accessTokenMaxAge: 2h
  refreshTokenIdle: 4h
  refreshGrace: 10s
  sessionMaxAge: 720h
  maximumClockSkew: 10s
  multipleLogin: true            # false: a new login revokes the user's other sessions
  loginLimit: {maxTries: 5, within: 10m, perAddress: 100, perClient: 1000}
  loginHistory: {keep: 168h, maxEntries: 100}
  clients:
  - name: platform
    secret: platform             # or secretHash:, or secretRef: {name, key}
    grantTypes: [password, refresh_token]
    redirectURIs: []
  users:
  - username: admin
    passwordRef: {name: platform-admin, key: passwordHash}   # or passwordHash: $2b$12$… / $argon2id$…, inline
    groups: [platform:admins]    # bound to the chart's rbac.adminClusterRole
    state: Active                # or Disabled
  identityProviders: []
logging: {store: pods}           # or opensearch | elasticsearch | loki, with its own section
gateway: {externalURL: ""}
requests: {maxInFlight: 400, maxInFlightPerUser: 100, trustedProxies: [], corsAllowedOrigins: []}
cache: {allResources: false, maxBytes: 1Gi, idle: 10m}
audit: {policy: {level: Metadata}, log: {path: "-"}, webhook: null}
log: {level: info, requestSampling: 1}
tracing: {endpoint: "", samplingRatePerMillion: 0, trustIncoming: false}
`;

/** A rule of the audit policy that matches everything. */
const everyRequest = {
  users: [],
  userGroups: [],
  verbs: [],
  resources: [],
  namespaces: [],
  nonResourceURLs: [],
  omitStages: [],
};

const expected = {
  apiVersion: 'config.platform.io/v1alpha1',
  kind: 'PlatformConfiguration',
  authentication: {
    issuer: 'https://platform-apiserver.platform-system.svc',
    signingAlgorithm: 'ES256',
    keyRotation: 720 * hour,
    accessTokenMaxAge: 2 * hour,
    refreshTokenIdle: 4 * hour,
    refreshGrace: 10_000,
    sessionMaxAge: 720 * hour,
    maximumClockSkew: 10_000,
    multipleLogin: true,
    loginLimit: { maxTries: 5, within: 600_000, perAddress: 100, perClient: 1_000 },
    loginHistory: { keep: 168 * hour, maxEntries: 100 },
    clients: [
      {
        name: 'platform',
        secret: 'platform',
        grantTypes: ['password', 'refresh_token'],
        scopes: ['openid', 'profile', 'email', 'groups', 'offline_access'],
        groups: [] as string[],
        redirectURIs: [] as string[],
        postLogoutRedirectURIs: [],
        public: false,
        consent: true,
        introspection: false,
        resources: [],
        idTokenSignedResponseAlg: 'RS256',
      },
    ],
    users: [
      {
        username: 'admin',
        passwordRef: { name: 'platform-admin', key: 'passwordHash' },
        groups: ['platform:admins'],
        state: 'Active',
        passwordChangeRequired: false,
      },
    ],
    identityProviders: [] as unknown[],
  },
  logging: { store: 'pods', pods: { maxBytesPerContainer: 67_108_864 } },
  gateway: { externalURL: '', idTokenClients: ['platform-cli'], strictTransportSecurity: 0 },
  requests: {
    maxInFlight: 400,
    maxInFlightPerUser: 100,
    trustedProxies: [] as string[],
    corsAllowedOrigins: [] as string[],
  },
  cache: { allResources: false, maxBytes: 1_073_741_824, idle: 600_000 },
  audit: {
    policy: {
      rules: [
        { ...everyRequest, level: 'None', nonResourceURLs: ['/healthz*', '/livez*', '/readyz*'] },
        { ...everyRequest, level: 'Metadata' },
      ],
      omitStages: ['RequestReceived'],
      omitManagedFields: false,
    },
    log: { path: '-', maxSize: 104_857_600, maxBackups: 10 },
    webhook: null,
  },
  log: { level: 'info', requestSampling: 1 },
  tracing: { endpoint: '', samplingRatePerMillion: 0, trustIncoming: false },
};

const withAuthentication = (text: string): string => `apiVersion: config.platform.io/v1alpha1
kind: PlatformConfiguration
authentication:
  issuer: https://a.example
${text}`;

const problems = (text: string): string[] => {
  const parsed = parseConfiguration(text);
  return parsed.ok ? [] : parsed.problems.map(formatProblem);
};
/** Removes the names that follow the indexes of list entries; test/unit/config/error-map.test.ts covers them. */
const unnamed = (path: string): string => path.replaceAll(/ \([^)]*\)/g, '');
const paths = (text: string): string[] => {
  const parsed = parseConfiguration(text);
  return parsed.ok ? [] : parsed.problems.map(({ path }) => unnamed(path));
};

describe('the configuration document', () => {
  test('the documented configuration document is accepted', () => {
    expect(parseConfiguration(example)).toEqual({ ok: true, value: expected });
  });

  test('the configuration document requires only an issuer, and every other setting has the documented default', () => {
    const { authentication, ...rest } = expected;
    expect(parseConfiguration(withAuthentication(''))).toEqual({
      ok: true,
      value: { ...rest, authentication: { ...authentication, issuer: 'https://a.example', users: [] } },
    });
  });

  test('a configuration document with an empty list of clients removes the default client', () => {
    const parsed = parseConfiguration(withAuthentication('  clients: []'));
    expect(parsed).toMatchObject({ ok: true, value: { authentication: { clients: [] } } });
  });

  test('an invalid configuration document is rejected with all problems at once, each with its path', () => {
    expect(
      paths(`apiVersion: config.platform.io/v2
kind: Configuration
colour: red
authentication:
  issuer: http://a.example/
  signingAlgorithm: HS256
  keyRotation: 1s
  accessTokenMaxAge: 7d
  sessionMaxAge: 999999h
  multipleLogin: sometimes
  loginLimit: {maxTries: 0, perAddress: 1.5, speed: 1}
  clients:
  - {name: a b, secret: x}
  - {name: c}
  - {name: c, secret: x, secretHash: y}
  users:
  - {username: Admin, passwordHash: secret}
  - {username: bob, groups: ["system:masters"], shell: bash}
  - {username: bob, passwordRef: {name: a}, state: Away, email: bob}
  identityProviders: [{name: ldap}]
requests: {maxInFlight: 0, trustedProxies: [proxy], corsAllowedOrigins: ["https://a/", "*"]}
gateway: {externalURL: http://a, strictTransportSecurity: 1h}
logging: {store: splunk}
cache: {maxBytes: plenty, allResources: 1}
audit: {policy: {level: All}, webhook: {url: "https://a:b@c/"}}
`),
    ).toEqual([
      'apiVersion',
      'kind',
      'authentication.issuer',
      'authentication.issuer',
      'authentication.keyRotation',
      'authentication.signingAlgorithm',
      'authentication.accessTokenMaxAge',
      'authentication.sessionMaxAge',
      'authentication.multipleLogin',
      'authentication.loginLimit.maxTries',
      'authentication.loginLimit.perAddress',
      'authentication.loginLimit.speed',
      'authentication.clients[0].name',
      'authentication.clients[1]',
      'authentication.clients[2].secretHash',
      'authentication.clients[2]',
      'authentication.clients[2]',
      'authentication.users[0].username',
      'authentication.users[0].passwordHash',
      'authentication.users[1].groups[0]',
      'authentication.users[1].shell',
      'authentication.users[1]',
      'authentication.users[2].passwordRef.key',
      'authentication.users[2].email',
      'authentication.users[2].state',
      'authentication.users[2]',
      'authentication.identityProviders[0].type',
      'requests.maxInFlight',
      'requests.trustedProxies[0]',
      'requests.corsAllowedOrigins[0]',
      'requests.corsAllowedOrigins[1]',
      'gateway.externalURL',
      'gateway.strictTransportSecurity',
      'logging.store',
      'cache.allResources',
      'cache.maxBytes',
      'audit.policy.level',
      'audit.webhook.url',
      'colour',
    ]);
  });

  // evidence: issuer-refused
  test.each([
    ['issuer: https://b.example/', 'issuer'],
    ['issuer: https://b.example?x', 'issuer'],
    ['issuer: ftp://b.example', 'issuer'],
    ['issuer: ""', 'issuer'],
    ['issuer: 5', 'issuer'],
    ['issuer: {}', 'issuer'],
  ])('the configuration document "%s" is rejected because of its issuer', (line, path) => {
    expect(new Set(paths(withAuthentication('').replace('issuer: https://a.example', line)))).toEqual(
      new Set([`authentication.${path}`]),
    );
  });

  // evidence: config-refused
  test.each([
    ['users: 3', 'users'],
    ['users: [3]', 'users[0]'],
    ['users: [null]', 'users[0]'],
    ['clients: [[]]', 'clients[0]'],
    ['users: null', 'users'],
    ['clients: null', 'clients'],
    ['clients: {}', 'clients'],
    ['refreshGrace: -1s', 'refreshGrace'],
    ['refreshGrace: 5', 'refreshGrace'],
    ['refreshTokenIdle: 0s', 'refreshTokenIdle'],
    ['sessionMaxAge: 87601h', 'sessionMaxAge'],
    [`sessionMaxAge: ${'9'.repeat(90)}h`, 'sessionMaxAge'],
    ['keyRotation: 59m', 'keyRotation'],
    ['loginLimit: null', 'loginLimit'],
    ['loginHistory: {maxEntries: 0}', 'loginHistory.maxEntries'],
    [
      'users: [{username: a, passwordHash: "$2b$31$aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]',
      'users[0].passwordHash',
    ],
    ['users: [{username: "system:a", passwordRef: {name: a, key: b}}]', 'users[0].username'],
    ['users: [{username: "a@b", passwordRef: {name: a, key: b}}]', 'users[0].username'],
    ['users: [{username: "-a", passwordRef: {name: a, key: b}}]', 'users[0].username'],
    [`users: [{username: "${'a'.repeat(254)}", passwordRef: {name: a, key: b}}]`, 'users[0].username'],
    ['users: [{username: a, passwordRef: {name: a, key: b}, groups: ["system:authenticated"]}]', 'users[0].groups[0]'],
    ['users: [{username: a, passwordRef: {name: a, key: b}, groups: [""]}]', 'users[0].groups[0]'],
    ['users: [{username: a, passwordRef: {name: a, key: b}, groups: [" system:masters"]}]', 'users[0].groups[0]'],
    ['users: [{username: a, passwordRef: {name: a, key: b}, groups: ["b", "c\\u00a0"]}]', 'users[0].groups[1]'],
    ['clients: [{name: a, secret: x, groups: ["a\\tb"]}]', 'clients[0].groups[0]'],
    ['users: [{username: a, passwordRef: {name: "", key: b}}]', 'users[0].passwordRef.name'],
    ['users: [{username: a}]', 'users[0]'],
    ['clients: [{name: kubernetes, secret: x}]', 'clients[0].name'],
    ['clients: [{name: password-change, secret: x}]', 'clients[0].name'],
    ['clients: [{name: a, secret: x, grantTypes: [implicit]}]', 'clients[0].grantTypes[0]'],
    ['clients: [{name: platform, secret: x, introspection: true}]', 'clients[0].introspection'],
    ['clients: [{name: platform, secret: x, groups: [a]}]', 'clients[0].groups'],
    ['clients: [{name: platform, secret: x, grantTypes: [client_credentials]}]', 'clients[0].grantTypes'],
    ['clients: [{name: a, secret: x, groups: ["system:masters"]}]', 'clients[0].groups[0]'],
    ['clients: [{name: a, secret: x, scopes: [everything]}]', 'clients[0].scopes[0]'],
    ['clients: [{name: a, secret: 5}]', 'clients[0].secret'],
    ['clients: [{name: a, public: true, secret: x}]', 'clients[0]'],
    ['clients: [{name: a, public: true, grantTypes: [client_credentials]}]', 'clients[0].grantTypes'],
    ['clients: [{name: a, public: true, grantTypes: [password]}]', 'clients[0].grantTypes'],
    ['clients: [{name: a, public: true, groups: [g]}]', 'clients[0].groups'],
    ['clients: [{name: a, public: true, introspection: true}]', 'clients[0].introspection'],
    ['clients: [{name: a, secret: x, grantTypes: [authorization_code]}]', 'clients[0].redirectURIs'],
    ...[
      'http://console.example/',
      'javascript:alert(1)',
      'data:text/html,x',
      'https://a@b/',
      'https://a/#x',
      'https://a/ b',
      '/callback',
    ].map((uri): [string, string] => [
      `clients: [{name: a, secret: x, redirectURIs: ["${uri}"]}]`,
      'clients[0].redirectURIs[0]',
    ]),
    ['clients: [{name: a, secret: x, secretRef: {name: a, key: b}}]', 'clients[0]'],
  ])('a configuration document with %s is rejected', (line, path) => {
    expect(paths(withAuthentication(`  ${line}\n`))).toEqual([`authentication.${path}`]);
  });

  test.each([
    ['refreshGrace: 0s'],
    ['maximumClockSkew: "0"'],
    ['sessionMaxAge: 87600h'],
    ['users: [{username: a, passwordHash: "$2b$10$aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]'],
    [
      'users: [{username: a.b-c1, passwordRef: {name: a, key: b}, email: a@b.example, displayName: A, state: Disabled}]',
    ],
    ['clients: [{name: a, secretRef: {name: a, key: b}, grantTypes: []}]'],
  ])('a configuration document with %s is accepted', (line) => {
    expect(problems(withAuthentication(`  ${line}\n`))).toEqual([]);
  });

  test.each(['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty'])(
    'a configuration document with the unknown key %s is rejected',
    (key) => {
      expect(problems(withAuthentication(`${key}: {}\n`))).toEqual([`${key}: is not a known key`]);
      expect(problems(withAuthentication(`  ${key}: {}\n`))).toEqual([`authentication.${key}: is not a known key`]);
    },
  );

  // evidence: client-name-unique
  test('a configuration document with a repeated name is rejected with the position of the name', () => {
    expect(
      problems(
        withAuthentication(`  users:
  - {username: a, passwordRef: {name: a, key: b}}
  - {username: b, passwordRef: {name: a, key: b}}
  - {username: a, passwordRef: {name: c, key: b}}
  clients: [{name: x, secret: y}, {name: x, secret: z}]
`),
      ),
    ).toEqual([
      'authentication.clients[1] (x): duplicate client name "x"',
      'authentication.users[2] (a): duplicate username "a"',
    ]);
  });

  test('error messages for the configuration document never contain a secret', () => {
    const secret = 'correct-horse-battery';
    const text = withAuthentication(`  users:
  - {username: a, passwordHash: ${secret}}
  - {username: b, passwordRef: ${secret}}
  - {username: b, passwordHash: [${secret}]}
  clients:
  - {name: x, secret: [${secret}]}
  - {name: y, secret: ${secret}, secretHash: ${secret}}
  - {name: z, secretRef: ${secret}}
`);
    expect(problems(text).length).toBeGreaterThan(5);
    expect(problems(text).join('\n')).not.toContain(secret);
    expect(problems(`${text}"${secret}`).join('\n')).not.toContain(secret);
  });
});

describe('text that is not a YAML mapping', () => {
  test.each([
    ['a: b: c', 'line 1, column 4'],
    ['a: 1\nb: 2\na: 3', 'line 3, column 1'],
    ['a: 1\n---\nb: 2', 'line 2, column 1'],
    ['a: 1\nb: "x', 'line 2, column 6'],
    ['a: 1\nb: [1, 2', 'line 2, column 9'],
    ['\ta: 1', 'line 1, column 1'],
    ['a: 1\n\n\nb: %x', 'line 4, column 4'],
    ['a: 1\n[b]: 2', 'line 2, column 1'],
    ['a: 1\nb: *nobody', 'line 2, column 4'],
    ['a: [*b, &b 1]', 'line 1, column 5'],
  ])('text that is not a YAML mapping is rejected with its position: %j at %s', (text, line) => {
    const parsed = parseConfiguration(text);
    expect(parsed).toMatchObject({ ok: false });
    expect(paths(text)[0]).toBe(line);
    expect(problems(text)[0]).toMatch(/^line \d+, column \d+: is not valid YAML: /);
  });

  test.each(['', ' \n', '# nothing', 'null', '[]', '- a', '5', 'text', '"', '{}x', 'x: *nobody'])(
    'text that is not a YAML mapping is rejected: %j',
    (text) => {
      expect(problems(text).length).toBeGreaterThan(0);
    },
  );

  test('a configuration larger than 1 MiB is rejected', () => {
    expect(problems(`# ${'x'.repeat(1024 * 1024)}`)).toEqual(['must not be larger than 1 MiB']);
  });

  test('a configuration whose aliases would exhaust the memory is rejected', () => {
    const bomb = Array.from(
      { length: 30 },
      (_, at) => `a${at}: &a${at} [${at === 0 ? '1' : `*a${at - 1}, *a${at - 1}`}]`,
    );
    expect(problems(bomb.join('\n')).join()).toMatch(/alias/i);
  });

  test('any text that is not a YAML mapping is rejected without an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.string({ unit: fc.constantFrom(...'a: -[]{}&*!|>\'"\n\t#%@`,?'.split('')) }),
        ),
        (text) => {
          expect(problems(text).length).toBeGreaterThan(0);
        },
      ),
      { numRuns: 500 },
    );
  });
});
