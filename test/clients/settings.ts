/** Settings of docs/guides/clients.md, with addresses of the lab instead of the documented addresses. */
import { randomBytes } from 'node:crypto';
import { parse } from 'yaml';
import { blocksUnder } from '../labs/integration/documents.ts';
import type { Configuration } from '../labs/integration/configure.ts';
import { secureGateway } from '../labs/integration/http.ts';
import { remember } from '../labs/integration/secrets.ts';

const page = 'guides/clients.md';

/** Replaces the addresses of the platform and of tools. Without `port`, any port matches (RFC 8252 section 7.3). */
const here = (text: string, port?: number): string =>
  text
    .replaceAll('https://platform.example.com', secureGateway())
    .replaceAll(/https:\/\/[a-z\d-]+\.example\.com/g, `http://127.0.0.1${port === undefined ? '' : `:${port}`}`);

/** Returns the blocks of a section in order. */
export const settingsOf = (heading: string, port?: number): string[] =>
  blocksUnder(page, heading).map(({ text }) => here(text, port));

interface Registered {
  readonly authentication: { readonly clients: readonly { readonly name: string; readonly public?: boolean }[] };
  readonly gateway: object;
}

const secrets = new Map<string, string>();

/** Returns the secret of a registered client. */
export function secretOf(client: string): string {
  const secret = secrets.get(client);
  if (secret === undefined) throw new Error(`${client} has no secret`);
  return secret;
}

/**
 * Registers the documented clients with generated secrets in the configuration. Sets an issuer that the clients can
 * resolve without cluster DNS.
 */
export function registerClients(configuration: Configuration): void {
  const { authentication, gateway } = parse(settingsOf('Register the clients').join('')) as Registered;
  configuration.authentication['issuer'] = secureGateway();
  configuration['gateway'] = gateway;
  for (const { name, ...client } of authentication.clients) {
    const secret = randomBytes(24).toString('base64url');
    remember(secret);
    if (client.public !== true) secrets.set(name, secret);
    configuration.authentication.clients.push({
      name,
      ...client,
      ...(client.public === true ? {} : { secretRef: undefined, secret }),
    });
  }
}
