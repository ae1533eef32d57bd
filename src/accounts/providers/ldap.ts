/** Logging in at an LDAP directory: find the one entry of that name, then bind as it (RFC 4513 section 5.1.3). */
import type { LDAPSettings } from '../../config/identity-providers.ts';
import { fill, isRefusal, resultOf, withConnection, type LDAPConnection, type Entry } from './ldap-connection.ts';
import type { Statement } from './person.ts';

export interface LDAPLoginRequest {
  readonly settings: LDAPSettings;
  /** Undefined while the Secret that holds it is missing. */
  readonly bindPassword: string | undefined;
  readonly login: string;
  readonly password: string;
  /** Told who it would be, before the password is tried; what it throws ends the attempt. */
  readonly found: (subject: string) => void;
}

/** The directory does not let us in ourselves: nobody can log in there until the configuration or its Secret is changed. */
export class BindRefused extends Error {
  override readonly name = 'BindRefused';
}

/** Active Directory's is sixteen bytes (MS-ADTS section 3.1.1.1.3), all others are text. */
const binary = 'objectGUID';
/** One more than a person may be in is told from all of them. */
const mostGroups = 201;

/** What the directory says of somebody; undefined for a wrong password, and for a name that is not that of exactly one entry. */
export async function askDirectory(question: LDAPLoginRequest): Promise<Statement | undefined> {
  const { settings, login, password, found } = question;
  // RFC 4513 section 5.1.2: a bind without password succeeds, and says nothing of who it was.
  if (password === '') return undefined;
  return await withConnection(settings, async (connection) => {
    await bindAsService(connection, question);
    const entry = await findOne(connection, settings, login);
    if (entry === undefined) {
      // In place of the bind as the entry, so that both take the same requests.
      await bindAsService(connection, question);
      return undefined;
    }
    const { subject, username, email, displayName } = settings.userSearch.attributes;
    const [id, ...others] = valuesOf(entry, subject);
    if (id === undefined || others.length > 0)
      throw new Error(`the entry ${entry.dn} has not one ${subject}: set userSearch.attributes.subject`);
    found(id);
    if (!(await mayBind(connection, entry.dn, password))) return undefined;
    await bindAsService(connection, question);
    return {
      subject: id,
      username: valuesOf(entry, username)[0],
      email: valuesOf(entry, email)[0] ?? null,
      displayName: valuesOf(entry, displayName)[0],
      groups: await groupsOf(connection, settings, entry),
    };
  });
}

async function bindAsService(connection: LDAPConnection, { settings, bindPassword }: LDAPLoginRequest): Promise<void> {
  const { bindDN = '', bindPasswordRef } = settings;
  const { name = '', key = '' } = bindPasswordRef ?? {};
  if (bindDN !== '' && (bindPassword ?? '') === '')
    throw new Error(`there is no password in ${key} of the Secret ${name}`);
  // Without both it is nobody who asks (RFC 4513 section 5.1.1).
  try {
    await connection.bind(bindDN, bindDN === '' ? '' : bindPassword);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const who =
      bindDN === ''
        ? 'to be asked without bindDN'
        : `the bindDN "${bindDN}" or its password, the key "${key}" of the Secret "${name}"`;
    throw new BindRefused(`the directory refuses ${who}: ${resultOf(error) ?? ''}`, { cause: error });
  }
}

async function findOne(
  connection: LDAPConnection,
  { userSearch: { base, filter, attributes } }: LDAPSettings,
  login: string,
): Promise<Entry | undefined> {
  const { searchEntries } = await connection.search(base, {
    scope: 'sub',
    filter: fill(filter, { username: login }),
    attributes: [...new Set(Object.values(attributes))],
    explicitBufferAttributes: [binary],
    sizeLimit: 2,
  });
  const [entry, ...others] = searchEntries;
  return others.length === 0 && entry?.dn !== '' ? entry : undefined;
}

async function mayBind(connection: LDAPConnection, dn: string, password: string): Promise<boolean> {
  try {
    await connection.bind(dn, password);
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

async function groupsOf(
  connection: LDAPConnection,
  { groupSearch, userSearch }: LDAPSettings,
  entry: Entry,
): Promise<string[]> {
  if (groupSearch === undefined) return [];
  const { base, filter, attribute } = groupSearch;
  const [username = ''] = valuesOf(entry, userSearch.attributes.username);
  const { searchEntries } = await connection.search(base, {
    scope: 'sub',
    filter: fill(filter, { dn: entry.dn, username }),
    attributes: [attribute],
    sizeLimit: mostGroups,
  });
  return searchEntries.flatMap((group) => valuesOf(group, attribute)[0] ?? []);
}

/** The name of an attribute is that in whatever case (RFC 4512 section 2.5). */
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
