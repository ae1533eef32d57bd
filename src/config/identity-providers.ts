/**
 * `authentication.identityProviders`: external identity providers and how their people become users
 * (docs/guides/identity-providers.md).
 */
import { z } from 'zod';
import { anyList, anyObject, caCertificate, duration, secretKeyRef, unique } from './fields.ts';
import { httpsURLExpected, isHTTPSURL } from './https-url.ts';

/**
 * Reserved names of providers. The name is the prefix of a provider's groups, and these prefixes belong to the platform
 * and Kubernetes.
 */
const reserved: readonly string[] = ['platform', 'system'];

const name = z
  .string()
  .max(63)
  .regex(
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
    'must consist of lower-case letters, digits and "-", and start and end with a letter or digit',
  )
  .refine((text) => !reserved.includes(text), `must not be ${reserved.map((one) => `"${one}"`).join(' or ')}`)
  .describe('Unique name, which is part of linked identities and group names. Never reuse it for another provider');

const attribute = (fallback: string) =>
  z
    .string()
    .regex(/^[A-Za-z][-A-Za-z0-9]*$/, 'must be an attribute name')
    .default(fallback);

/**
 * A filter (RFC 4515). Validates enough to guarantee that the text that replaces a placeholder stays a single value.
 */
const filter = (...placeholders: string[]) =>
  z
    .string()
    .max(2_000)
    .refine((text) => {
      let depth = 0;
      for (let at = 0; at < text.length; at += 1) {
        if (text[at] === '(') depth += 1;
        if (text[at] === ')') depth -= 1;
        if (depth < 0 || (depth === 0 && at < text.length - 1)) return false;
      }
      return depth === 0 && text.startsWith('(');
    }, 'must be a filter in parentheses, such as "(uid={username})"')
    .refine(
      (text) => placeholders.some((one) => text.includes(`={${one}}`)),
      `must contain ${placeholders.map((one) => `={${one}}`).join(' or ')}`,
    );

const loopback: readonly string[] = ['127.0.0.1', '[::1]', 'localhost'];

const ldapURL = (text: unknown): boolean => {
  if (typeof text !== 'string' || !URL.canParse(text)) return false;
  const { protocol, hostname, username, password, pathname, search, hash } = new URL(text);
  const rest = [username, password, pathname.replace(/^\/$/, ''), search, hash].join('');
  return ['ldap:', 'ldaps:'].includes(protocol) && hostname !== '' && rest === '';
};

/** Compares the scheme, ignoring case (RFC 3986 section 3.1). */
const isScheme = (url: string, scheme: 'ldap:' | 'ldaps:'): boolean => ldapURL(url) && new URL(url).protocol === scheme;

const ldap = z
  .strictObject({
    url: z
      .string()
      .refine(ldapURL, 'must be ldaps://host[:port] or ldap://host[:port], without a path or query')
      .describe('URL of the LDAP server: ldaps:// or ldap://, host and optional port'),
    startTLS: z.boolean().default(false).describe('Starts TLS on an ldap:// connection'),
    caCertificate,
    bindDN: z
      .string()
      .min(1)
      .optional()
      .describe('DN with which this server binds to search for users. Default: anonymous bind'),
    bindPasswordRef: secretKeyRef.optional().describe('Password of bindDN'),
    userSearch: z.strictObject({
      base: z.string().min(1).describe('Base DN of the search for users'),
      filter: filter('username')
        .default('(uid={username})')
        .describe('Filter that finds the entry of the user who logs in as {username}'),
      attributes: z
        .strictObject({
          subject: attribute('entryUUID').describe(
            'Attribute that never changes and is never reused. For Active Directory: objectGUID',
          ),
          username: attribute('uid').describe('Attribute for the username'),
          email: attribute('mail').describe('Attribute for the e-mail address'),
          displayName: attribute('cn').describe('Attribute for the display name'),
        })
        .prefault({}),
    }),
    groupSearch: z
      .strictObject({
        base: z.string().min(1).describe('Base DN of the search for groups'),
        filter: filter('dn', 'username')
          .default('(member={dn})')
          .describe(
            'Filter that finds the groups of a user. {dn} is the DN of the entry, {username} the value of its username attribute',
          ),
        attribute: attribute('cn').describe('Attribute for the group name. The group becomes <provider>:<group>'),
      })
      .optional()
      .describe('Search for the groups of a user. Default: no groups'),
    timeout: duration('5s', '1s', '30s').describe('Timeout of a login, including all its searches'),
  })
  .refine(({ bindDN, bindPasswordRef }) => (bindDN === undefined) === (bindPasswordRef === undefined), {
    ...anyObject,
    error: 'must have both bindDN and bindPasswordRef, or neither',
  })
  .refine(({ url, startTLS }) => !startTLS || !isScheme(url, 'ldaps:'), {
    ...anyObject,
    path: ['startTLS'],
    error: 'requires an ldap:// URL: ldaps:// already uses TLS',
  })
  .refine(({ url, startTLS }) => startTLS || !isScheme(url, 'ldap:') || loopback.includes(new URL(url).hostname), {
    ...anyObject,
    path: ['url'],
    error: 'must be ldaps://, or ldap:// with startTLS: true; otherwise passwords are sent in plain text',
  });

const claim = z.string().min(1).max(256);

const oidc = z.strictObject({
  issuer: z
    .string()
    .refine(isHTTPSURL, httpsURLExpected)
    .refine((text) => !/[?#]/.test(text), 'must have no query and no fragment')
    .describe('Issuer of the provider'),
  clientID: z.string().min(1).describe('client_id of this server at the provider'),
  clientSecretRef: secretKeyRef.describe('client_secret of this server at the provider'),
  caCertificate,
  scopes: z
    .array(z.string().regex(/^[!#-[\]-~]+$/, 'must be a scope (RFC 6749 section 3.3)'))
    .max(50)
    .default(['openid', 'profile', 'email'])
    .refine((scopes) => scopes.includes('openid'), 'must contain "openid"')
    .describe('Scopes to request'),
  claims: z
    .strictObject({
      username: claim.default('preferred_username').describe('Claim for the username'),
      email: claim.default('email').describe('Claim for the e-mail address. Ignored unless email_verified is true'),
      displayName: claim.default('name').describe('Claim for the display name'),
      groups: claim.optional().describe('Claim for the groups. Default: no groups'),
    })
    .prefault({})
    .describe('Claims of the id_token or the userinfo endpoint'),
});

const shared = {
  name,
  displayName: z.string().min(1).max(256).optional().describe('Name that users see. Default: name'),
  mapping: z
    .enum(['auto', 'lookup'])
    .default('lookup')
    .describe(
      'Users who are allowed to log in. lookup: those linked to a User object (spec.identities). auto: all; the first login creates a User object',
    ),
};

const ofType = <const Type extends string, Section extends z.ZodRawShape>(type: Type, section: Section) =>
  z.strictObject({
    ...shared,
    type: z.literal(type).describe('Type of the provider. LDAP requires the section ldap, OIDC the section oidc'),
    ...section,
  });

const types = [ofType('LDAP', { ldap }), ofType('OIDC', { oidc })] as const;
const names = types.map(({ shape }) => shape.type.value).join(' or ');
const provider = z.discriminatedUnion('type', types, { error: `must be ${names}` });

export const identityProviders = z.array(provider).max(20).superRefine(unique('name', 'name'), anyList).default([]);

export type IdentityProvider = z.output<typeof provider>;
export type LDAPSettings = z.output<typeof ldap>;
export type OpenIDSettings = z.output<typeof oidc>;

export type ProviderTypeName = IdentityProvider['type'];
export type ProviderOf<Name extends ProviderTypeName> = Extract<IdentityProvider, { readonly type: Name }>;

/** Section of each type, and the key in it that refers to a Secret. */
const secretPaths = {
  LDAP: ['ldap', 'bindPasswordRef'],
  OIDC: ['oidc', 'clientSecretRef'],
} as const satisfies Record<ProviderTypeName, readonly [section: string, key: string]>;

/** Returns the path at which the configuration of a provider refers to a Secret. */
export const secretPathOf = ({ type }: IdentityProvider): readonly [section: string, key: string] => secretPaths[type];

/** Returns the reference to the Secret, if the provider has one. */
export function secretOf(settings: IdentityProvider): z.output<typeof secretKeyRef> | undefined {
  const [section, key] = secretPathOf(settings);
  return (settings as unknown as Record<string, Record<string, z.output<typeof secretKeyRef>>>)[section]?.[key];
}
