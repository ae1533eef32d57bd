/** The ways in which somebody logs in at the terminal. Each answers what the token endpoint said. */
import { setTimeout as sleep } from 'node:timers/promises';
import { askSecretly } from '../hash-password.ts';
import { deviceOf, longestPause, type TokenServerResponse, shown } from './answers.ts';
import { OAuthRefusal, type AuthorizationServer } from './authorization-server.ts';

type Server = Pick<AuthorizationServer, 'post'>;

export interface TerminalLogin {
  /** The OAuth client, and what it shows at the token endpoint. */
  readonly client: { readonly client_id: string; readonly client_secret?: string };
  readonly logIn: (server: Server, username: string) => Promise<TokenServerResponse>;
}

const cli = { client_id: 'platform-cli' };
/** Default client, whose secret is public (docs/tokens.md). */
const platform = { client_id: 'platform', client_secret: 'platform' };
const grantType = 'urn:ietf:params:oauth:grant-type:device_code';

/** RFC 8628: anywhere with a browser, be it another machine. */
const device: TerminalLogin = {
  client: cli,
  async logIn(server) {
    const begun = deviceOf(await server.post('/oauth/device_authorization', cli));
    if (begun === undefined) throw new Error('the server answers like no server of the platform');
    const { code, userCode, address, interval, life } = begun;
    process.stderr.write(`Open ${shown(address)}\nand let in the device that shows ${shown(userCode)}\n`);
    let pause = interval;
    for (let waited = 0; waited < life; waited += pause) {
      await sleep(pause * 1_000);
      try {
        return await server.post('/oauth/token', { grant_type: grantType, device_code: code, ...cli });
      } catch (error) {
        if (!(error instanceof OAuthRefusal)) throw error;
        // RFC 8628 section 3.5.
        if (error.error === 'slow_down') pause = Math.min(pause + 5, longestPause);
        else if (error.error !== 'authorization_pending') throw error;
      }
    }
    throw new Error('nobody has let the device in in time');
  },
};

const password: TerminalLogin = {
  client: platform,
  async logIn(server, username) {
    const secret = await askSecretly(`Password of ${shown(username)}: `, process.stdin);
    return await server.post('/oauth/token', { grant_type: 'password', username, password: secret, ...platform });
  },
};

export const logins: Readonly<Record<'device' | 'password', TerminalLogin>> = { device, password };
