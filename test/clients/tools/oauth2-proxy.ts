/** oauth2-proxy in front of the gateway. */
import { equal, match } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../labs/integration/eventually.ts';
import { lab } from '../../labs/integration/lab.ts';
import { adminToken, passwordForm, tokens } from '../../labs/integration/login.ts';
import { startProgram } from '../../labs/integration/program.ts';
import { remember } from '../../labs/integration/secrets.ts';
import { buildGoProgram } from '../go-program.ts';
import { toolPort } from '../replay.ts';
import { secretOf, settingsOf } from '../settings.ts';
import type { Site } from '../site.ts';
import type { Built, Flow, Tool } from '../tool.ts';
import { Visitor } from '../visitor.ts';

/**
 * Starts oauth2-proxy with the documented blocks, except the settings that match `without`, and calls `use` with its
 * address.
 */
async function proxied(
  { path }: Built,
  site: Site,
  use: (origin: string) => Promise<void>,
  { blocks = 1, without = /^$/ }: { readonly blocks?: 1 | 2; readonly without?: RegExp } = {},
): Promise<void> {
  const port = await toolPort();
  const folder = site.folder();
  const settings = settingsOf('oauth2-proxy', port)
    .slice(0, blocks)
    .join('')
    .replaceAll('/etc/oauth2-proxy', folder)
    .split('\n')
    .filter((line) => !without.test(line));
  const config = join(folder, 'oauth2-proxy.cfg');
  const cookieSecret = randomBytes(16).toString('hex');
  remember(cookieSecret);
  for (const [file, content] of [
    [config, settings.join('\n')],
    [join(folder, 'client-secret'), secretOf('oauth2-proxy')],
    [join(folder, 'cookie-secret'), cookieSecret],
  ] as const)
    writeFileSync(file, content, { mode: 0o600 });
  const address = `127.0.0.1:${port}`;
  // oauth2-proxy has no https address on this machine.
  const program = startProgram(path, [`--config=${config}`, `--http-address=${address}`, '--cookie-secure=false'], {
    SSL_CERT_FILE: lab().authorityFile,
  });
  try {
    await eventually('oauth2-proxy is ready', async () => {
      const { status } = await fetch(`http://${address}/ping`);
      if (status !== 200) throw new Error(`${status} ${program.text()}`);
    });
    await use(`http://${address}`);
  } finally {
    await program.end();
  }
}

const whoami = '/kapis/iam.platform.io/v1alpha2/whoami';

const logsIn: Flow = (client, site) =>
  proxied(client, site, async (origin) => {
    const browser = new Visitor(origin);
    const response = await browser.logIn(`/oauth2/start?rd=${whoami}`);
    equal(response.status, 302, await response.text());
    match(await (await browser.open(whoami)).text(), /"username":\s*"admin"/);
    equal((await browser.open('/api/v1/nodes')).status, 200);
  });

const bearers: Flow = (client, site) =>
  proxied(
    client,
    site,
    async (origin) => {
      const status = async (token: string): Promise<number> =>
        (await fetch(`${origin}/api/v1/nodes`, { headers: { authorization: `Bearer ${token}` } })).status;
      equal(await status(await adminToken()), 200);
      const { id_token: ofAnother = '' } = await tokens({ ...passwordForm('admin'), scope: 'openid' });
      equal(await status(ofAnother), 403);
    },
    { blocks: 2 },
  );

/** Logs in without a documented setting. */
const without =
  (setting: RegExp, check: (response: Response) => void): Flow =>
  (client, site) =>
    proxied(client, site, async (origin) => check(await new Visitor(origin).logIn('/oauth2/start')), {
      without: setting,
    });

const withoutPKCE = without(/^code_challenge_method/, ({ status, url }) => {
  equal(status, 403);
  // The page shows only the code of the error.
  match(new URL(url).searchParams.get('error_description') ?? '', /oauth2-proxy --code-challenge-method=S256/);
});

const withoutClaim = without(/^oidc_email_claim/, ({ status }) => equal(status, 500));

export const oauth2Proxy: Tool = {
  name: 'oauth2-proxy',
  build: () => buildGoProgram('oauth2-proxy'),
  flows: {
    'logs in with code_challenge_method, and sends id_tokens to the gateway': logsIn,
    'accepts access tokens with skip_jwt_bearer_tokens': bearers,
    'fails without code_challenge_method, with an error_description in the URL that names this setting': withoutPKCE,
    'fails without oidc_email_claim for a user without an e-mail address': withoutClaim,
  },
};
