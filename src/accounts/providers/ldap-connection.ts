/** Connections to LDAP servers and the meaning of result codes. No other file uses ldapts. */
import { Client, Filter, ResultCodeError, type Entry } from 'ldapts';
import { once } from 'node:events';
import { connect as connectTCP, isIP, type Socket } from 'node:net';
import { connect as connectTLS } from 'node:tls';
import type { LDAPSettings } from '../../config/identity-providers.ts';

export type LDAPClient = Pick<Client, 'bind' | 'search'>;
export type { Entry };

export interface LDAPConnection {
  /** Sends requests. A failure closes the connection. */
  run<T>(requests: (client: LDAPClient) => Promise<T>): Promise<T>;
  close(): void;
}

/** OID of the StartTLS request (RFC 4511 section 4.14). */
const startTLSRequest = '1.3.6.1.4.1.1466.20037';

/** Maximum bytes that are read from an LDAP server per login. An entry, its groups and bind results are far smaller. */
const maxBytes = 1024 * 1024;

/**
 * Result codes of a refused bind (RFC 4511 appendix A.1): inappropriateAuthentication (the entry has no password),
 * invalidCredentials, constraintViolation and unwillingToPerform (not allowed to log in now). Other codes do not
 * concern the password.
 */
const refusals: ReadonlySet<number> = new Set([19, 48, 49, 53]);
export const isRefusal = (error: unknown): boolean => error instanceof ResultCodeError && refusals.has(error.code);

/**
 * Returns the result code with its name in RFC 4511 section 4.1.9, such as `invalidCredentials (49)`. Returns undefined
 * for other errors.
 */
export const resultOf = (error: unknown): string | undefined =>
  error instanceof ResultCodeError
    ? `${error.name.slice(0, 1).toLowerCase()}${error.name.slice(1).replace(/Error$/, '')} (${error.code})`
    : undefined;

/** Replaces {placeholders} in a filter. Escapes the values, so each stays a single value (RFC 4515 section 3). */
export const fill = (filter: string, values: Readonly<Record<string, string>>): string =>
  filter.replaceAll(/\{(\w+)\}/g, (placeholder, name: string) => {
    const value = values[name];
    return value === undefined ? placeholder : Filter.escape(value);
  });

/**
 * Opens a connection, over TLS unless the configuration requests plain text. Destroys the connection `timeout`
 * milliseconds after it was opened. A lost connection is never replaced, because the new connection might not be
 * encrypted.
 */
export async function openConnection(
  settings: Pick<LDAPSettings, 'url' | 'startTLS' | 'caCertificate' | 'timeout'>,
): Promise<LDAPConnection> {
  const { url, timeout } = settings;
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replaceAll(/[[\]]/g, '');
  const socket = connectTCP({ host, port: Number(port) || (protocol === 'ldaps:' ? 636 : 389) });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    socket.destroy(new Error('timeout'));
  }, timeout);
  // An unhandled socket error must not crash the process.
  socket.on('error', () => undefined);
  const close = (): void => {
    clearTimeout(timer);
    socket.destroy();
  };
  const orClose = async <T>(requests: Promise<T>): Promise<T> => {
    try {
      return await requests;
    } catch (error) {
      close();
      throw isLate ? new Error(`no response within ${timeout} ms`, { cause: error }) : error;
    }
  };
  const client = await orClose(secure(socket, host, settings));
  return { run: (requests) => orClose(requests(client)), close };
}

async function secure(
  socket: Socket,
  host: string,
  { url, startTLS, caCertificate }: Pick<LDAPSettings, 'url' | 'startTLS' | 'caCertificate'>,
): Promise<Client> {
  await once(socket, 'connect');
  if (!startTLS && new URL(url).protocol === 'ldap:') return clientOn(socket);
  // This client must not be reused: it may have read bytes that arrived after the StartTLS response but before TLS,
  // possibly from an attacker.
  if (startTLS) await clientOn(socket).exop(startTLSRequest);
  const servername = isIP(host) === 0 ? host : undefined;
  const secured = connectTLS({ socket, host, servername, ca: caCertificate });
  secured.on('error', () => undefined);
  await once(secured, 'secureConnect');
  return clientOn(secured);
}

function clientOn(socket: Socket): Client {
  let isUsed = false;
  return new Client({
    // The client requires a URL, but does not use it, because the socket already exists.
    url: 'ldap://directory',
    createConnection: () => {
      if (isUsed) throw new Error('the connection was lost');
      isUsed = true;
      let size = 0;
      // Bytes are counted here, because the client buffers a message of any announced size until it is complete.
      socket.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxBytes) socket.destroy(new Error(`the LDAP server sent more than ${maxBytes} bytes`));
      });
      return socket;
    },
  });
}
