/** `authentication.identityProviders`: who else knows people, and how they become users here. docs/identity-providers.md has examples. */
import { z } from 'zod';
import { anyList, anyObject, caCertificate, duration, secretKeyRef, unique } from './fields.ts';
import { httpsURLExpected, isHTTPSURL } from './https-url.ts';

/** Its groups are called so here, and those names are the platform's and Kubernetes' own. */
const taken: readonly string[] = ['platform', 'system'];

const name = z
  .string()
  .max(63)
  .regex(
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
    'must be lower-case letters, digits and "-", and begin and end with a letter or digit',
  )
  .refine((text) => !taken.includes(text), `must not be ${taken.map((one) => `"${one}"`).join(' or ')}`)
  .describe('Links and groups are known by it: never give it to another provider');

const attribute = (fallback: string) =>
  z
    .string()
    .regex(/^[A-Za-z][-A-Za-z0-9]*$/, 'must be the name of an attribute')
    .default(fallback);

/** RFC 4515, as far as that a text put in for a placeholder stays one value. */
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
      `must have ${placeholders.map((one) => `={${one}}`).join(' or ')}`,
    );

const loopback: readonly string[] = ['127.0.0.1', '[::1]', 'localhost'];

const ldapURL = (text: unknown): boolean => {
  if (typeof text !== 'string' || !URL.canParse(text)) return false;
  const { protocol, hostname, username, password, pathname, search, hash } = new URL(text);
  const rest = [username, password, pathname.replace(/^\/$/, ''), search, hash].join('');
  return ['ldap:', 'ldaps:'].includes(protocol) && hostname !== '' && rest === '';
};

/** The scheme in whatever case (RFC 3986 section 3.1). */
const isScheme = (url: string, scheme: 'ldap:' | 'ldaps:'): boolean => ldapURL(url) && new URL(url).protocol === scheme;

const ldap = z
  .strictObject({
    url: z
      .string()
      .refine(ldapURL, 'must be ldaps://host[:port] or ldap://host[:port], and nothing behind it')
      .describe('ldaps:// or ldap://, the host and perhaps a port'),
    startTLS: z.boolean().default(false).describe('Of ldap://: TLS comes before anything else (RFC 4513 section 3)'),
    caCertificate,
    bindDN: z.string().min(1).optional().describe('As whom people are looked for; by default as nobody'),
    bindPasswordRef: secretKeyRef.optional().describe('The password of bindDN'),
    userSearch: z.strictObject({
      base: z.string().min(1).describe('The DN below which people are'),
      filter: filter('username').default('(uid={username})').describe('Which one is who logs in as {username}'),
      attributes: z
        .strictObject({
          subject: attribute('entryUUID').describe(
            'What never changes and is never given to another: objectGUID at Active Directory',
          ),
          username: attribute('uid').describe('What becomes the name of the user'),
          email: attribute('mail').describe('What becomes the e-mail address'),
          displayName: attribute('cn').describe('How people call the user'),
        })
        .prefault({}),
    }),
    groupSearch: z
      .strictObject({
        base: z.string().min(1).describe('The DN below which groups are'),
        filter: filter('dn', 'username')
          .default('(member={dn})')
          .describe('Which groups the entry {dn}, whose attribute has the value {username}, is in'),
        attribute: attribute('cn').describe('What a group is called, behind the name of the provider and ":"'),
      })
      .optional()
      .describe('By default nobody has groups from here'),
    timeout: duration('5s', '1s', '30s').describe('For a login as a whole'),
  })
  .refine(({ bindDN, bindPasswordRef }) => (bindDN === undefined) === (bindPasswordRef === undefined), {
    ...anyObject,
    error: 'must have both of bindDN and bindPasswordRef, or neither',
  })
  .refine(({ url, startTLS }) => !startTLS || !isScheme(url, 'ldaps:'), {
    ...anyObject,
    path: ['startTLS'],
    error: 'is for ldap://: ldaps:// is TLS already',
  })
  .refine(({ url, startTLS }) => startTLS || !isScheme(url, 'ldap:') || loopback.includes(new URL(url).hostname), {
    ...anyObject,
    path: ['url'],
    error: 'must be ldaps://, or have startTLS: passwords would cross the network readable',
  });

const claim = z.string().min(1).max(256);

const oidc = z.strictObject({
  issuer: z
    .string()
    .refine(isHTTPSURL, httpsURLExpected)
    .refine((text) => !/[?#]/.test(text), 'must have no query and no fragment')
    .describe('As the provider calls itself: /.well-known/openid-configuration is below it'),
  clientID: z.string().min(1).describe('As the provider calls this server'),
  clientSecretRef: secretKeyRef.describe('The secret that the provider has given to it'),
  caCertificate,
  scopes: z
    .array(z.string().regex(/^[!#-[\]-~]+$/, 'must be a scope (RFC 6749 section 3.3)'))
    .max(50)
    .default(['openid', 'profile', 'email'])
    .refine((scopes) => scopes.includes('openid'), 'must have "openid"')
    .describe('What the provider is asked for'),
  claims: z
    .strictObject({
      username: claim.default('preferred_username').describe('What becomes the name of the user'),
      email: claim.default('email').describe('Taken only where email_verified is true'),
      displayName: claim.default('name').describe('How people call the user'),
      groups: claim.optional().describe('By default nobody has groups from here'),
    })
    .prefault({})
    .describe('Of the id_token, or of the userinfo endpoint. Who somebody is says sub alone'),
});

const shared = {
  name,
  displayName: z.string().min(1).max(256).optional().describe('As people know it; by default its name'),
  mapping: z
    .enum(['auto', 'lookup'])
    .default('lookup')
    .describe(
      'Who may log in. lookup: whom a User object is linked to (spec.identities). auto: everybody; who has none gets one at the first login',
    ),
};

const ofType = <const Type extends string, Section extends z.ZodRawShape>(type: Type, section: Section) =>
  z.strictObject({ ...shared, type: z.literal(type).describe('Which section it has'), ...section });

const types = [ofType('LDAP', { ldap }), ofType('OIDC', { oidc })] as const;
const names = types.map(({ shape }) => shape.type.value).join(' or ');
const provider = z.discriminatedUnion('type', types, { error: `must be ${names}` });

export const identityProviders = z.array(provider).max(20).superRefine(unique('name', 'name'), anyList).default([]);

export type IdentityProvider = z.output<typeof provider>;
export type LDAPSettings = z.output<typeof ldap>;
export type OpenIDSettings = z.output<typeof oidc>;

export type ProviderTypeName = IdentityProvider['type'];
export type ProviderOf<Name extends ProviderTypeName> = Extract<IdentityProvider, { readonly type: Name }>;

/** The section of each type, and the setting in it that refers to a Secret. */
const secretPaths = {
  LDAP: ['ldap', 'bindPasswordRef'],
  OIDC: ['oidc', 'clientSecretRef'],
} as const satisfies Record<ProviderTypeName, readonly [section: string, key: string]>;

/** Where the configuration of a provider refers to a Secret. */
export const secretPathOf = ({ type }: IdentityProvider): readonly [section: string, key: string] => secretPaths[type];

/** The reference itself, which a provider may not need. */
export function secretOf(one: IdentityProvider): z.output<typeof secretKeyRef> | undefined {
  const [section, key] = secretPathOf(one);
  return (one as unknown as Record<string, Record<string, z.output<typeof secretKeyRef>>>)[section]?.[key];
}
