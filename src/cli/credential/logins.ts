/** The ways in which somebody logs in at the terminal. Each answers what the token endpoint said. */
import { setTimeout as sleep } from 'node:timers/promises';
import { askSecretly } from '../ask.ts';
import { Refusal, type AuthorizationServer } from './authorization-server.ts';

export interface Login {
  /** The OAuth client, and what it shows at the token endpoint. */
  readonly client: { readonly client_id: string; readonly client_secret?: string };
  readonly logIn: (server: AuthorizationServer, username: string) => Promise<Readonly<Record<string, unknown>>>;
}

const cli = { client_id: 'platform-cli' };
/** Everybody knows its secret (API.md 2). */
const platform = { client_id: 'platform', client_secret: 'platform' };
const grantType = 'urn:ietf:params:oauth:grant-type:device_code';

/** RFC 8628: anywhere with a browser, be it another machine. */
const device: Login = {
  client: cli,
  async logIn(server) {
    const begun = await server.post('/oauth/device_authorization', cli);
    const { device_code: code, user_code, verification_uri_complete: address, interval = 5 } = begun;
    process.stderr.write(`Open ${String(address)}\nand let in the device that shows ${String(user_code)}\n`);
    let pause = Number(interval);
    for (;;) {
      await sleep(pause * 1_000);
      try {
        return await server.post('/oauth/token', { grant_type: grantType, device_code: String(code), ...cli });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        // RFC 8628 section 3.5.
        if (error.error === 'slow_down') pause += 5;
        else if (error.error !== 'authorization_pending') throw error;
      }
    }
  },
};

const password: Login = {
  client: platform,
  async logIn(server, username) {
    const secret = await askSecretly(`Password of ${username}: `, process.stdin);
    return await server.post('/oauth/token', { grant_type: 'password', username, password: secret, ...platform });
  },
};

export const logins: Readonly<Record<'device' | 'password', Login>> = { device, password };
