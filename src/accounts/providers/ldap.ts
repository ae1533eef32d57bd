/**
 * Authenticates users at an LDAP server: finds the single entry with the name, then binds as that entry (RFC 4513
 * section 5.1.3).
 */
import type { LDAPSettings, ProviderOf } from '../../config/identity-providers.ts';
import { inClientSpan } from '../../runtime/tracing.ts';
import { fill, isRefusal, openConnection, resultOf, type LDAPClient, type Entry } from './ldap-connection.ts';
import type { Statement } from './person.ts';
import { CredentialsRefused, type LookUp, type PasswordProvider, type ProviderParts } from './provider.ts';

export const ldap = {
  kind: 'password',
  create: ({ ldap: settings }: ProviderOf<'LDAP'>, { secret: bindPassword }: ProviderParts): PasswordProvider => ({
    lookUp: (login) => lookUp({ settings, bindPassword }, login),
  }),
} as const;

/** Configuration of a login at an LDAP server. */
interface Service {
  readonly settings: LDAPSettings;
  /** Password of bindDN, undefined while its Secret is missing. */
  readonly bindPassword: string | undefined;
}

/** The only binary attribute: sixteen bytes in Active Directory (MS-ADTS section 3.1.1.1.3). */
const binary = 'objectGUID';
/** One more than the maximum number of groups, to detect a person with too many groups. */
const maxGroups = 201;

/** Looks up the entry with the name. If several entries have the name, the name counts as unknown. */
export async function lookUp(service: Service, login: string): Promise<LookUp> {
  const { settings } = service;
  const { connection, entry, subject } = await traced('search', settings, async () => {
    const opened = await openConnection(settings);
    return await opened.run(async (client) => {
      await bindAsService(client, service);
      const found = await findOne(client, settings, login);
      return { connection: opened, entry: found, subject: found && subjectOf(found, settings) };
    });
  });
  return {
    subject,
    authenticate: (password) =>
      connection.run((client) =>
        traced('bind', settings, async () => {
          // RFC 4513 section 5.1.2: a bind without a password succeeds for any entry.
          const isRight = entry !== undefined && password !== '' && (await canBind(client, entry.dn, password));
          // If no entry was found, this bind is sent instead of a bind as the entry, so that all failed logins send the
          // same requests.
          if (entry === undefined || isRight) await bindAsService(client, service);
          return isRight ? await statementOf(client, settings, entry) : undefined;
        }),
      ),
    close: () => connection.close(),
  };
}

/** Runs requests to the LDAP server within one span. */
const traced = <T>(operation: string, { url }: LDAPSettings, requests: () => Promise<T>): Promise<T> =>
  inClientSpan({ peer: 'identity-provider', operation, url: new URL(url) }, requests);

function subjectOf(entry: Entry, { userSearch }: LDAPSettings): string {
  const { subject } = userSearch.attributes;
  const [id, ...others] = valuesOf(entry, subject);
  if (id === undefined || others.length > 0)
    throw new Error(`the entry ${entry.dn} must have exactly one ${subject}; check userSearch.attributes.subject`);
  return id;
}

async function statementOf(client: LDAPClient, settings: LDAPSettings, entry: Entry): Promise<Statement> {
  const { username, email, displayName } = settings.userSearch.attributes;
  return {
    subject: subjectOf(entry, settings),
    username: valuesOf(entry, username)[0],
    email: valuesOf(entry, email)[0] ?? null,
    displayName: valuesOf(entry, displayName)[0],
    groups: await groupsOf(client, settings, entry),
  };
}

async function bindAsService(client: LDAPClient, { settings, bindPassword }: Service): Promise<void> {
  const { bindDN = '', bindPasswordRef } = settings;
  const { name = '', key = '' } = bindPasswordRef ?? {};
  if (bindDN !== '' && (bindPassword ?? '') === '')
    throw new Error(`the key "${key}" of the Secret "${name}" is missing or empty`);
  // A bind with an empty name and password is anonymous (RFC 4513 section 5.1.1).
  try {
    await client.bind(bindDN, bindDN === '' ? '' : bindPassword);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const rejected =
      bindDN === ''
        ? 'anonymous searches; set bindDN'
        : `the bindDN "${bindDN}" or its password, the key "${key}" of the Secret "${name}"`;
    throw new CredentialsRefused(`the LDAP server rejects ${rejected}: ${resultOf(error) ?? ''}`, { cause: error });
  }
}

async function findOne(
  client: LDAPClient,
  { userSearch: { base, filter, attributes } }: LDAPSettings,
  login: string,
): Promise<Entry | undefined> {
  const { searchEntries } = await client.search(base, {
    scope: 'sub',
    filter: fill(filter, { username: login }),
    attributes: [...new Set(Object.values(attributes))],
    explicitBufferAttributes: [binary],
    sizeLimit: 2,
  });
  const [entry, ...others] = searchEntries;
  return others.length === 0 && entry?.dn !== '' ? entry : undefined;
}

async function canBind(client: LDAPClient, dn: string, password: string): Promise<boolean> {
  try {
    await client.bind(dn, password);
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

async function groupsOf(
  client: LDAPClient,
  { groupSearch, userSearch }: LDAPSettings,
  entry: Entry,
): Promise<string[]> {
  if (groupSearch === undefined) return [];
  const { base, filter, attribute } = groupSearch;
  const [username = ''] = valuesOf(entry, userSearch.attributes.username);
  const { searchEntries } = await client.search(base, {
    scope: 'sub',
    filter: fill(filter, { dn: entry.dn, username }),
    attributes: [attribute],
    sizeLimit: maxGroups,
  });
  return searchEntries.flatMap((group) => valuesOf(group, attribute)[0] ?? []);
}

/** Returns the values of an attribute. Attribute names are case-insensitive (RFC 4512 section 2.5). */
function valuesOf(entry: Entry, attribute: string): string[] {
  const isNamed = (name: string): boolean => name !== 'dn' && name.toLowerCase() === attribute.toLowerCase();
  const [, values = []] = Object.entries(entry).find(([name]) => isNamed(name)) ?? [];
  return [values]
    .flat()
    .map((value) =>
      typeof value === 'string'
        ? value
        : value.toString(attribute.toLowerCase() === binary.toLowerCase() ? 'hex' : 'utf8'),
    );
}
