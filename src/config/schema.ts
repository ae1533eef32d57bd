/**
 * Schema of the cluster configuration object, `platform.yaml`, with defaults and descriptions. The reference
 * documentation is generated from this schema, so describe a key here before you write the code that reads it.
 */
import { configGroup, kubernetesAudience, passwordChangeAudience } from './names.ts';
import { isIP } from 'node:net';
import { z } from 'zod';
import { audit } from './audit.ts';
import { anyList, anyObject, bytes, duration, secretKeyRef, unique } from './fields.ts';
import { parametersOf } from './hash-parameters.ts';
import { hasUserInfo, httpsURLExpected, isHTTPSURL } from './https-url.ts';
import { identityProviders } from './identity-providers.ts';
import { logging } from './log-stores.ts';
import { tracing } from './tracing.ts';

/**
 * Returns whether a name is not reserved for Kubernetes. A user with a `system:` name would have the rights that
 * Kubernetes grants to that name.
 */
const noSystem = (text: string): boolean => !text.startsWith('system:');

const username = z
  .string()
  .max(253)
  .regex(
    /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/,
    'must consist of lower-case letters, digits, "-" and ".", and start and end with a letter or digit',
  );

/** These rules are the same as in the CustomResourceDefinition of users. */
const group = z
  .string()
  .max(253)
  .regex(
    /^[^\p{Cc}\p{Z}]([^\p{Cc}]*[^\p{Cc}\p{Z}])?$/u,
    'must not be empty, start or end with a space, or contain control characters',
  )
  .refine(noSystem, 'must not begin with "system:"');

const passwordHash = z
  .string()
  .refine(
    (text) => parametersOf(text) !== undefined,
    'must be a bcrypt hash of cost 4 to 16, or an argon2id hash of at most 256 MiB, 16 passes and 16 lanes; create one with "platform-apiserver hash-password"',
  );

const user = z
  .strictObject({
    username: username.describe('Name with which the user logs in'),
    passwordRef: secretKeyRef.optional().describe('Secret with the password hash. Recommended'),
    passwordHash: passwordHash.optional().describe('Password hash, bcrypt or argon2id'),
    displayName: z.string().max(256).optional().describe('Display name'),
    email: z.email().optional().describe('E-mail address, also for logins'),
    groups: z.array(group).max(100).default([]).describe('Groups, for use in role bindings'),
    state: z
      .enum(['Active', 'Disabled'])
      .default('Active')
      .describe('Disabled users cannot log in, and their sessions are revoked'),
    passwordChangeRequired: z
      .boolean()
      .default(false)
      .describe('The user must change the password before any other request'),
  })
  .refine((value) => !value.passwordChangeRequired || value.passwordHash === undefined, {
    ...anyObject,
    path: ['passwordChangeRequired'],
    error: 'requires passwordRef: users cannot change a hash in the configuration',
  })
  .refine((value) => (value.passwordRef === undefined) !== (value.passwordHash === undefined), {
    ...anyObject,
    error: 'must have exactly one of passwordRef and passwordHash',
  });

interface GrantRules {
  readonly grantType: string;
  /**
   * True if the grant is allowed for clients whose configuration lists no grants, and for the client whose secret is
   * public.
   */
  readonly isDefault?: true;
  /** True if the grant is allowed for public clients, which cannot authenticate. A user approves each login. */
  readonly isPublic?: true;
  readonly needsRedirectURI?: true;
  /** Kind of subject of the sessions that the grant creates; undefined for users. */
  readonly subjectKind?: 'Client' | 'ServiceAccount';
}

/** Grants that the configuration can allow for a client. */
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

/**
 * Returns the grants that create sessions for a kind of subject. These sessions are revoked when the client loses all
 * of these grants.
 */
export const grantTypesFor = (kind: GrantRules['subjectKind']): readonly string[] =>
  typesOf(grants.filter(({ subjectKind }) => subjectKind === kind));

/** Signing algorithms of tokens (RFC 7518 section 3.1). */
export const signingAlgorithms = ['RS256', 'ES256'] as const;

/** Supported scopes. */
export const clientScopes = ['openid', 'profile', 'email', 'groups', 'offline_access'] as const;

/** The default client. The secret of this client is public unless another secret is configured. */
export const wellKnownClient = 'platform';
export const wellKnownSecret = 'platform';

/** Restricts the default client, because its secret is public. */
function restrictWellKnown(
  value: Partial<Record<'name' | 'grantTypes' | 'groups' | 'introspection', unknown>> | undefined,
  context: z.RefinementCtx,
): void {
  if (value?.name !== wellKnownClient) return;
  const refuse = (key: string): void =>
    context.addIssue({
      code: 'custom',
      path: [key],
      message: `is not allowed for the client "${wellKnownClient}", whose secret is public; configure a separate client`,
    });
  const listed: unknown[] = Array.isArray(value.grantTypes) ? value.grantTypes : [];
  if (listed.some((grant) => !defaultGrantTypes.includes(grant as string))) refuse('grantTypes');
  if (Array.isArray(value.groups) && value.groups.length > 0) refuse('groups');
  if (value.introspection === true) refuse('introspection');
}

/** Returns whether a native program can listen at a URL, on any free port (RFC 8252 section 7.3). */
export const isLoopback = (url: URL): boolean =>
  url.protocol === 'http:' && (url.hostname === '127.0.0.1' || url.hostname === '[::1]');

/**
 * Returns whether the text is a valid redirect URI of a client. Schemes of native programs are reversed domain names
 * (RFC 8252 section 7.1), which rules out `javascript:`.
 */
const isRedirectURI = (text: string): boolean => {
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
      .refine((text) => !text.includes('*'), { error: 'must be exact, without "*"', abort: true })
      .refine(
        isRedirectURI,
        'must be an https URL, an http URL on 127.0.0.1, [::1] or localhost, or a URL with a scheme such as "com.example.app:", without fragment, username and spaces',
      ),
  )
  .max(100)
  .default([]);

/**
 * Checks that a client has exactly one secret, or is public and has only the settings that are allowed for public
 * clients.
 */
function checkAuthentication(
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
  if (secrets.length > 0) refuse([], 'must not have a secret, because it is public');
  const listed: unknown[] = Array.isArray(value.grantTypes) ? value.grantTypes : [];
  if (listed.some((grant) => !publicGrantTypes.includes(grant as string)))
    refuse(['grantTypes'], `must be one of ${publicGrantTypes.join(', ')} for a public client`);
  if (Array.isArray(value.groups) && value.groups.length > 0) refuse(['groups'], 'are not allowed for a public client');
  if (value.introspection === true) refuse(['introspection'], 'is not allowed for a public client');
}

/**
 * RFC 7519 section 4.1.3: the name is the audience of id_tokens, so it must differ from the audience of access tokens.
 * The issuer needs no check, because it is a URL.
 */
const clientName = z
  .string()
  .regex(
    /^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$/,
    'must consist of letters, digits, "-", "." and "_", and start and end with a letter or digit',
  )
  .max(253)
  .refine(
    (name) => name !== kubernetesAudience && name !== passwordChangeAudience,
    `must not be ${kubernetesAudience} or ${passwordChangeAudience}, which are audiences of access tokens`,
  );

const client = z
  .strictObject({
    name: clientName.describe('The client_id'),
    public: z.boolean().default(false).describe("Client without a secret, such as a program on users' machines"),
    secret: z
      .string()
      .min(1)
      .optional()
      .describe(
        'The client_secret. A client that is not public must have exactly one of secret, secretHash and secretRef',
      ),
    secretHash: passwordHash.optional().describe('Hash of the secret, bcrypt or argon2id'),
    secretRef: secretKeyRef.optional().describe('Secret with the client_secret. Recommended'),
    grantTypes: z
      .array(z.enum(clientGrantTypes))
      .optional()
      .describe(
        'Allowed grants. Default: password and refresh_token; for a public client, all that public clients are allowed to use',
      ),
    scopes: z
      .array(z.enum(clientScopes))
      .default([...clientScopes])
      .describe('Scopes that tokens of the client are allowed to have'),
    groups: z
      .array(group)
      .max(100)
      .default([])
      .describe('Groups of platform:client:<name>, the user of the client_credentials grant'),
    redirectURIs: redirectURIs.describe(
      'Exact URIs to which authorization codes are sent. On 127.0.0.1 and [::1], any port matches',
    ),
    postLogoutRedirectURIs: redirectURIs.describe('Exact URIs for redirects after a logout'),
    consent: z
      .boolean()
      .default(true)
      .describe('Users must approve the client. Set false only for your own applications'),
    introspection: z
      .boolean()
      .default(false)
      .describe("Allows a resource server to introspect and revoke other clients' tokens"),
    resources: z
      .array(z.string().max(2_000).refine(isHTTPSURL, httpsURLExpected))
      .max(100)
      .default([])
      .describe('Other resource servers for which the client is allowed to request access tokens (RFC 8707)'),
    idTokenSignedResponseAlg: z
      .enum(signingAlgorithms)
      .default('RS256')
      .describe(
        'Signing algorithm of the id_tokens of the client. ES256 costs less, but some libraries accept only RS256',
      ),
  })
  .superRefine(checkAuthentication, anyObject)
  .superRefine(restrictWellKnown, anyObject)
  .refine(
    ({ grantTypes, redirectURIs: registered }) =>
      !Array.isArray(grantTypes) ||
      !redirectGrantTypes.some((one) => grantTypes.includes(one)) ||
      (Array.isArray(registered) && registered.length > 0),
    {
      ...anyObject,
      path: ['redirectURIs'],
      error: `must have at least one entry for the grant ${redirectGrantTypes.join(' or ')}`,
    },
  )
  .transform(({ grantTypes, ...rest }) => ({
    ...rest,
    grantTypes: grantTypes ?? (rest.public ? publicGrantTypes : defaultGrantTypes),
  }));

const loginLimit = z.strictObject({
  maxTries: z
    .int()
    .min(1)
    .max(1000)
    .default(5)
    .describe('Maximum failures of one user from one address within the window'),
  within: duration('10m').describe('Time for which a failure counts: the window of these limits'),
  perAddress: z
    .int()
    .min(1)
    .default(100)
    .describe(
      'Maximum failures from one address (IPv6: /64) within the window. An IPv6 /48 is allowed five times as many, up to half of perClient',
    ),
  perClient: z
    .int()
    .min(1)
    .default(1000)
    .describe(
      'Maximum failures through one client within the window, except at addresses where the user logged in recently',
    ),
});

const cidr = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()], 'must be an IP address or a CIDR block');

const authentication = z.strictObject({
  issuer: z
    .string()
    .refine(isHTTPSURL, httpsURLExpected)
    .refine((text) => !text.endsWith('/') && !/[?#]/.test(text), 'must have no trailing "/", no query and no fragment')
    .describe('Issuer of the tokens, and the URL below which clients reach this server'),
  keyRotation: duration('720h', '1h').describe('Age at which a signing key is replaced by a new one'),
  signingAlgorithm: z.enum(signingAlgorithms).default('ES256').describe('Signing algorithm of access tokens'),
  accessTokenMaxAge: duration('2h').describe('Lifetime of an access token, limited by the lifetime of its session'),
  refreshTokenIdle: duration('4h').describe('Time without a refresh after which a session expires'),
  refreshGrace: duration('10s', '0s').describe('Time for which a used refresh token still returns the same successor'),
  sessionMaxAge: duration('720h').describe('Maximum lifetime of a session'),
  maximumClockSkew: duration('10s', '0s').describe('Allowed clock skew for exp and nbf. iat is not checked'),
  multipleLogin: z.boolean().default(true).describe("If false, a new login revokes the user's other sessions"),
  loginLimit: loginLimit.prefault({}).describe('Limits of failed logins'),
  loginHistory: z
    .strictObject({
      keep: duration('168h').describe('How long records are kept'),
      maxEntries: z.int().min(1).max(10_000).default(100).describe('Maximum number of records'),
    })
    .prefault({})
    .describe('Login history of each user'),
  clients: z
    .array(client)
    .superRefine(unique('name', 'client name'), anyList)
    .prefault([{ name: wellKnownClient, secret: wellKnownSecret }])
    .describe('OAuth clients, in addition to the built-in clients platform-cli and platform-docs'),
  users: z
    .array(user)
    .superRefine(unique('username', 'username'), anyList)
    .default([])
    .describe('Users in addition to the User objects. They take precedence over User objects of the same name'),
  identityProviders: identityProviders.describe('External identity providers, such as a company directory'),
});

const requests = z.strictObject({
  maxInFlight: z
    .int()
    .min(1)
    .default(400)
    .describe(
      'Maximum concurrent reads. Changes and logins each have a limit of the same size, anonymous requests a quarter of it',
    ),
  maxInFlightPerUser: z
    .int()
    .min(1)
    .default(100)
    .describe('Maximum concurrent requests of one user, and logins from one address. An IPv6 /48 gets twice as many'),
  trustedProxies: z.array(cidr).default([]).describe('Proxies whose X-Forwarded-For header is trusted'),
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
    .describe('Origins whose pages are allowed to read responses, without cookies'),
});

/**
 * Returns whether a URL has a host name. Browsers ignore Strict-Transport-Security for IP addresses (RFC 6797 section
 * 8.1.1).
 */
const hasHostName = (url: unknown): boolean =>
  typeof url === 'string' && isHTTPSURL(url) && isIP(new URL(url).hostname.replace(/^\[|\]$/g, '')) === 0;

const gateway = z
  .strictObject({
    externalURL: z
      .string()
      .default('')
      .refine((text) => text === '' || isHTTPSURL(text), `${httpsURLExpected}, or empty`)
      .describe('URL at which clients outside the cluster reach the HTTPS port'),
    idTokenClients: z
      .array(clientName)
      .default(['platform-cli'])
      .describe('Clients whose id_tokens are accepted as bearer tokens'),
    strictTransportSecurity: duration('0s', '0s').describe(
      'max-age of Strict-Transport-Security. 0s disables the header. See docs/guides/expose.md',
    ),
  })
  .refine(({ externalURL, strictTransportSecurity }) => strictTransportSecurity === 0 || hasHostName(externalURL), {
    ...anyObject,
    path: ['strictTransportSecurity'],
    error: 'requires externalURL with a host name: browsers ignore the header for IP addresses',
  });

const cache = z.strictObject({
  allResources: z
    .boolean()
    .default(false)
    .describe('If true, the chart grants the server the rights to cache every resource except Secrets'),
  maxBytes: bytes('1Gi').describe('Maximum size of all cached resources'),
  idle: duration('10m').describe('Time without use after which a resource is removed from the cache'),
});

const log = z.strictObject({
  level: z.enum(['error', 'warn', 'info']).default('info').describe('Least severe level that is logged'),
  requestSampling: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('Fraction of the requests that are logged. Requests with a status of 500 or more are always logged'),
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
  log: log.prefault({}),
  tracing: tracing.prefault({}),
});

/** The parsed configuration: all defaults filled in, durations in milliseconds. */
export type PlatformConfiguration = z.output<typeof platformConfiguration>;
export type ConfiguredClient = PlatformConfiguration['authentication']['clients'][number];
export type LoginLimit = PlatformConfiguration['authentication']['loginLimit'];
export type LoginHistorySettings = PlatformConfiguration['authentication']['loginHistory'];
