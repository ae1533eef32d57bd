/**
 * The cluster configuration object, `platform.yaml`: its shape, its defaults and what each key means.
 * This schema is the documentation of the file: complete it before the code that reads a key.
 */
import { configGroup } from './names.ts';
import { isIP } from 'node:net';
import { z } from 'zod';
import { audit } from './audit.ts';
import { anyList, anyObject, bytes, duration, secretKeyRef, unique } from './fields.ts';
import { parametersOf } from './hash-parameters.ts';
import { hasUserInfo, httpsURLExpected, isHTTPSURL } from './https-url.ts';
import { identityProviders } from './identity-providers.ts';
import { logging } from './log-stores.ts';

/** A `system:` name is Kubernetes' own: a user of ours by that name would have its rights. */
const noSystem = (text: string): boolean => !text.startsWith('system:');

const username = z
  .string()
  .max(253)
  .regex(
    /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/,
    'must be lower-case letters, digits, "-" and ".", and begin and end with a letter or digit',
  );

/** As the CustomResourceDefinition of the users has it. */
const group = z
  .string()
  .max(253)
  .regex(
    /^[^\p{Cc}\p{Z}]([^\p{Cc}]*[^\p{Cc}\p{Z}])?$/u,
    'must be there, begin and end with no space, and have no control character',
  )
  .refine(noSystem, 'must not begin with "system:"');

const passwordHash = z
  .string()
  .refine(
    (text) => parametersOf(text) !== undefined,
    'must be a bcrypt hash of cost 4 to 16, or an argon2id hash of at most 256 MiB, 16 passes and 16 lanes; "platform-apiserver hash-password" makes one',
  );

const user = z
  .strictObject({
    username: username.describe('By which the user logs in'),
    passwordRef: secretKeyRef.optional().describe('Where the hash is; recommended'),
    passwordHash: passwordHash.optional().describe('The hash itself, bcrypt or argon2id'),
    displayName: z.string().max(256).optional().describe('How people call the user'),
    email: z.email().optional().describe('The user may log in with it in the place of the name'),
    groups: z.array(group).max(100).default([]).describe('Role bindings name them'),
    state: z
      .enum(['Active', 'Disabled'])
      .default('Active')
      .describe('Who is Disabled cannot log in, and what was begun before ends'),
    passwordChangeRequired: z
      .boolean()
      .default(false)
      .describe('The user may do nothing but change the password, until that is done'),
  })
  .refine((value) => !value.passwordChangeRequired || value.passwordHash === undefined, {
    ...anyObject,
    path: ['passwordChangeRequired'],
    error: 'needs passwordRef: a hash that stands here cannot be changed by the user',
  })
  .refine((value) => (value.passwordRef === undefined) !== (value.passwordHash === undefined), {
    ...anyObject,
    error: 'must have exactly one of passwordRef and passwordHash',
  });

interface GrantRules {
  readonly grantType: string;
  /** Allowed to clients whose configuration lists no grants, and to the client whose secret everybody knows. */
  readonly isDefault?: true;
  /** Allowed to public clients, which cannot authenticate: a user approves each login. */
  readonly isPublic?: true;
  readonly needsRedirectURI?: true;
  /** Subject of the sessions that it starts; a user if undefined. */
  readonly subjectKind?: 'Client' | 'ServiceAccount';
}

/** Grants that the configuration can allow a client. */
const grants: readonly GrantRules[] = [
  { grantType: 'password', isDefault: true },
  { grantType: 'refresh_token', isDefault: true, isPublic: true },
  { grantType: 'authorization_code', isPublic: true, needsRedirectURI: true },
  { grantType: 'client_credentials', subjectKind: 'Client' },
  { grantType: 'urn:ietf:params:oauth:grant-type:device_code', isPublic: true },
  { grantType: 'urn:ietf:params:oauth:grant-type:token-exchange', subjectKind: 'ServiceAccount' },
];

const typesOf = (some: readonly GrantRules[]): readonly string[] => some.map(({ grantType }) => grantType);
export const clientGrantTypes = typesOf(grants);
export const publicGrantTypes = typesOf(grants.filter(({ isPublic }) => isPublic));
const defaultGrantTypes = typesOf(grants.filter(({ isDefault }) => isDefault));
const redirectGrantTypes = typesOf(grants.filter(({ needsRedirectURI }) => needsRedirectURI));

/** Grants that start sessions of these subjects. A client that is no longer allowed any of them loses those sessions. */
export const grantTypesFor = (kind: GrantRules['subjectKind']): readonly string[] =>
  typesOf(grants.filter(({ subjectKind }) => subjectKind === kind));

/** The scopes that mean something. */
export const clientScopes = ['openid', 'profile', 'email', 'groups', 'offline_access'] as const;

/** Everybody knows the secret that it has unless it is configured with another. */
export const wellKnownClient = 'platform';
export const wellKnownSecret = 'platform';

/** What that client may have: it proves nothing. */
function provesNothing(
  value: Partial<Record<'name' | 'grantTypes' | 'groups' | 'introspection', unknown>> | undefined,
  context: z.RefinementCtx,
): void {
  if (value?.name !== wellKnownClient) return;
  const refuse = (key: string): void =>
    context.addIssue({
      code: 'custom',
      path: [key],
      message: `is not for the client "${wellKnownClient}", whose secret proves nothing: make a client of its own for it`,
    });
  const listed: unknown[] = Array.isArray(value.grantTypes) ? value.grantTypes : [];
  if (listed.some((grant) => !defaultGrantTypes.includes(grant as string))) refuse('grantTypes');
  if (Array.isArray(value.groups) && value.groups.length > 0) refuse('groups');
  if (value.introspection === true) refuse('introspection');
}

/** RFC 8252 section 7.3: a program listens there at whatever port is free. */
export const isLoopback = (url: URL): boolean =>
  url.protocol === 'http:' && (url.hostname === '127.0.0.1' || url.hostname === '[::1]');

/** RFC 8252 section 7.1: a scheme of a program is a domain name turned around, so that no `javascript:` is one. */
const mayRedirectTo = (text: string): boolean => {
  if (!URL.canParse(text) || !/^[!-~]+$/.test(text) || text.includes('#')) return false;
  const url = new URL(text);
  if (hasUserInfo(url)) return false;
  const isPlain = isLoopback(url) || (url.protocol === 'http:' && url.hostname === 'localhost');
  return url.protocol === 'https:' || isPlain || url.protocol.includes('.');
};

const redirectURIs = z
  .array(
    z
      .string()
      .max(2_000)
      .refine((text) => !text.includes('*'), { error: 'must be exact: no "*"', abort: true })
      .refine(
        mayRedirectTo,
        'must be an https URL, http on 127.0.0.1, [::1] or localhost, or of a scheme such as "com.example.app:", without fragment, user or spaces',
      ),
  )
  .max(100)
  .default([]);

/** What a client without a secret may have. */
function mayBePublic(
  value:
    | Partial<
        Record<'public' | 'secret' | 'secretHash' | 'secretRef' | 'grantTypes' | 'groups' | 'introspection', unknown>
      >
    | undefined,
  context: z.RefinementCtx,
): void {
  const refuse = (path: string[], message: string): void => context.addIssue({ code: 'custom', path, message });
  const secrets = [value?.secret, value?.secretHash, value?.secretRef].filter((one) => one !== undefined);
  if (value?.public !== true) {
    if (secrets.length !== 1) refuse([], 'must have exactly one of secret, secretHash and secretRef, or public: true');
    return;
  }
  if (secrets.length > 0) refuse([], 'is public, so it must have no secret');
  const listed: unknown[] = Array.isArray(value.grantTypes) ? value.grantTypes : [];
  if (listed.some((grant) => !publicGrantTypes.includes(grant as string)))
    refuse(['grantTypes'], `of a public client may be ${publicGrantTypes.join(', ')}`);
  if (Array.isArray(value.groups) && value.groups.length > 0) refuse(['groups'], 'are not for a public client');
  if (value.introspection === true) refuse(['introspection'], 'is not for a public client');
}

const client = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$/, 'must be letters, digits, "-", "." and "_"')
      .max(253)
      .describe('The client_id'),
    public: z
      .boolean()
      .default(false)
      .describe('Has no secret, as a program has none on the machines of others; for authorization and device codes'),
    secret: z
      .string()
      .min(1)
      .optional()
      .describe('The client_secret itself; of a client that is not public one of these three'),
    secretHash: passwordHash.optional().describe('Its hash, bcrypt or argon2id'),
    secretRef: secretKeyRef.optional().describe('Where the secret is; recommended'),
    grantTypes: z
      .array(z.enum(clientGrantTypes))
      .optional()
      .describe('By default password and refresh_token; of a public client those that it may have'),
    scopes: z
      .array(z.enum(clientScopes))
      .default([...clientScopes])
      .describe('What its tokens may have'),
    groups: z
      .array(group)
      .max(100)
      .default([])
      .describe('Of platform:client:<name>, as whom the client acts by the grant client_credentials'),
    redirectURIs: redirectURIs.describe(
      'Where people are sent with an authorization code, exactly; on 127.0.0.1 and [::1] at any port',
    ),
    postLogoutRedirectURIs: redirectURIs.describe('Where people may be sent when they have logged out, exactly'),
    consent: z
      .boolean()
      .default(true)
      .describe('false: people are not asked before this client gets tokens; for your own applications'),
    introspection: z
      .boolean()
      .default(false)
      .describe('Lets it ask about, and revoke, tokens of other clients: for resource servers'),
  })
  .superRefine(mayBePublic, anyObject)
  .superRefine(provesNothing, anyObject)
  .refine(
    ({ grantTypes, redirectURIs: registered }) =>
      !Array.isArray(grantTypes) ||
      !redirectGrantTypes.some((one) => grantTypes.includes(one)) ||
      (Array.isArray(registered) && registered.length > 0),
    { ...anyObject, path: ['redirectURIs'], error: `must have one, for the grant ${redirectGrantTypes.join(' or ')}` },
  )
  .transform(({ grantTypes, ...rest }) => ({
    ...rest,
    grantTypes: grantTypes ?? (rest.public ? publicGrantTypes : defaultGrantTypes),
  }));

const loginLimit = z.strictObject({
  maxTries: z.int().min(1).max(1000).default(5).describe('Failures of one user from one address within the window'),
  within: duration('10m').describe('The window: how long a failure counts'),
  perAddress: z
    .int()
    .min(1)
    .default(100)
    .describe(
      'Failures from one address within the window; IPv6: from one /64. One /48 may have five times as many, up to half of perClient',
    ),
  perClient: z
    .int()
    .min(1)
    .default(1000)
    .describe('Failures through one client within the window; not for users where they have logged in lately'),
});

const cidr = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()], 'must be an IP address or a CIDR block');

const authentication = z.strictObject({
  issuer: z
    .string()
    .refine(isHTTPSURL, httpsURLExpected)
    .refine((text) => !text.endsWith('/') && !/[?#]/.test(text), 'must have no trailing "/", no query and no fragment')
    .describe('How this server calls itself in tokens, and below which clients find it'),
  keyRotation: duration('720h', '1h').describe('How old a signing key gets before a new one takes over, with overlap'),
  signingAlgorithm: z
    .enum(['ES256', 'RS256'])
    .default('ES256')
    .describe('Of access tokens; id_tokens are always RS256'),
  accessTokenMaxAge: duration('2h').describe('How long an access token is good, never beyond its session'),
  refreshTokenIdle: duration('4h').describe('A session that is not refreshed for so long ends'),
  refreshGrace: duration('10s', '0s').describe(
    'How long a refresh token that was used already gets the same successor again',
  ),
  sessionMaxAge: duration('720h').describe('A session ends this long after its login, whatever happens'),
  maximumClockSkew: duration('10s', '0s').describe('Tolerance for exp and nbf; iat is never compared'),
  multipleLogin: z.boolean().default(true).describe("false: a new login ends the user's other sessions"),
  loginLimit: loginLimit
    .prefault({})
    .describe(
      'Of failed logins and, counted apart, of wrong secrets of clients and failed callbacks of OpenID providers',
    ),
  loginHistory: z
    .strictObject({
      keep: duration('168h').describe('How long'),
      maxEntries: z.int().min(1).max(10_000).default(100).describe('How many, the newest'),
    })
    .prefault({})
    .describe('Login records kept of each user'),
  clients: z
    .array(client)
    .superRefine(unique('name', 'client name'), anyList)
    .prefault([{ name: wellKnownClient, secret: wellKnownSecret }])
    .describe('Programs that get tokens; platform-cli and platform-docs are there anyway'),
  users: z
    .array(user)
    .superRefine(unique('username', 'username'), anyList)
    .default([])
    .describe('People, beside the User objects; of two of one name this one counts'),
  identityProviders: identityProviders.describe('Who else knows people, such as a company directory'),
});

const requests = z.strictObject({
  maxInFlight: z
    .int()
    .min(1)
    .default(400)
    .describe(
      'Reads served at once, and as many changes and logins; more are answered 429. Anonymous requests get a quarter',
    ),
  maxInFlightPerUser: z
    .int()
    .min(1)
    .default(100)
    .describe('The same per user, and per address that logs in; an IPv6 /48 gets twice as many'),
  trustedProxies: z.array(cidr).default([]).describe('Whose X-Forwarded-For is believed'),
  corsAllowedOrigins: z
    .array(
      z
        .string()
        .refine(
          (text) => URL.canParse(text) && new URL(text).origin === text,
          'must be an origin, such as "https://console.example.com"',
        ),
    )
    .default([])
    .describe('Pages of which other sites may read answers; none with credentials that a browser adds'),
});

/** RFC 6797 section 8.1.1: browsers ignore the header of an address. */
const hasHostName = (url: unknown): boolean =>
  typeof url === 'string' && isHTTPSURL(url) && isIP(new URL(url).hostname.replace(/^\[|\]$/g, '')) === 0;

const gateway = z
  .strictObject({
    externalURL: z
      .string()
      .default('')
      .refine((text) => text === '' || isHTTPSURL(text), `${httpsURLExpected}, or empty`)
      .describe('Where clients outside the cluster reach the TLS listener'),
    strictTransportSecurity: duration('0s', '0s').describe(
      'max-age of Strict-Transport-Security, 0s: not sent; see operations.md, "Strict-Transport-Security"',
    ),
  })
  .refine(({ externalURL, strictTransportSecurity }) => strictTransportSecurity === 0 || hasHostName(externalURL), {
    ...anyObject,
    path: ['strictTransportSecurity'],
    error: 'needs externalURL with a host name: browsers ignore it for an IP address',
  });

const cache = z.strictObject({
  allResources: z
    .boolean()
    .default(false)
    .describe('By this the chart lets the server read, and so copy, every resource; Secrets are never copied'),
  maxBytes: bytes('1Gi').describe(
    'What the copies of the cluster may hold together; a resource that does not fit is answered 503',
  ),
  idle: duration('10m').describe('A copy that nobody has used for so long is given up'),
});

export const platformConfiguration = z.strictObject({
  apiVersion: z.literal(`${configGroup}/v1alpha1`),
  kind: z.literal('PlatformConfiguration'),
  authentication,
  requests: requests.prefault({}),
  gateway: gateway.prefault({}),
  logging: logging.prefault({}),
  cache: cache.prefault({}),
  audit: audit.prefault({}),
});

/** The configuration as the program reads it: every default filled in, durations in milliseconds. */
export type PlatformConfiguration = z.output<typeof platformConfiguration>;
export type ConfiguredClient = PlatformConfiguration['authentication']['clients'][number];
export type LoginLimit = PlatformConfiguration['authentication']['loginLimit'];
export type LoginHistorySettings = PlatformConfiguration['authentication']['loginHistory'];
