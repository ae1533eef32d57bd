/** Logins at the terminal. Each login returns the response of the token endpoint. */
import { setTimeout as sleep } from 'node:timers/promises';
import { promptSecretly } from '../hash-password.ts';
import { deviceOf, maxInterval, type TokenServerResponse, terminalSafe } from './responses.ts';
import { OAuthRefusal, type AuthorizationServer } from './authorization-server.ts';

type Server = Pick<AuthorizationServer, 'post'>;

export interface TerminalLogin {
  /** The OAuth client with its credentials for the token endpoint. */
  readonly client: { readonly client_id: string; readonly client_secret?: string };
  /** True if a user can be prompted. */
  readonly canPrompt: () => boolean;
  readonly logIn: (server: Server, username: string) => Promise<TokenServerResponse>;
}

const cli = { client_id: 'platform-cli' };
/** Default client, whose secret is public (docs/guides/tokens.md). */
const platform = { client_id: 'platform', client_secret: 'platform' };
const grantType = 'urn:ietf:params:oauth:grant-type:device_code';

/** RFC 8628: the user logs in with a browser on any machine. */
const device: TerminalLogin = {
  client: cli,
  // This login only shows text, so standard input need not be a terminal.
  canPrompt: () => process.stdin.isTTY || process.stderr.isTTY,
  async logIn(server) {
    const authorization = deviceOf(await server.post('/oauth/device_authorization', cli));
    if (authorization === undefined)
      throw new Error('unexpected response from the server; check that its URL is the URL of the platform');
    const { code, userCode, address, interval, life } = authorization;
    process.stderr.write(
      `Open ${terminalSafe(address)}\nand authorize the device with the code ${terminalSafe(userCode)}\n`,
    );
    let pause = interval;
    for (let waited = 0; waited < life; waited += pause) {
      await sleep(pause * 1_000);
      try {
        return await server.post('/oauth/token', { grant_type: grantType, device_code: code, ...cli });
      } catch (error) {
        if (!(error instanceof OAuthRefusal)) throw error;
        // The server requests a longer interval (RFC 8628 section 3.5).
        if (error.error === 'slow_down') pause = Math.min(pause + 5, maxInterval);
        else if (error.error !== 'authorization_pending') throw error;
      }
    }
    throw new Error('the device was not authorized in time; run the command again');
  },
};

const password: TerminalLogin = {
  client: platform,
  // Scripts may send the password to standard input.
  canPrompt: () => true,
  async logIn(server, username) {
    const secret = await promptSecretly(`Password of ${terminalSafe(username)}: `, process.stdin);
    if (secret === '') throw new Error('no password was entered, at the terminal or on standard input');
    return await server.post('/oauth/token', { grant_type: 'password', username, password: secret, ...platform });
  },
};

export const logins: Readonly<Record<'device' | 'password', TerminalLogin>> = { device, password };
