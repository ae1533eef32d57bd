import { equal, match } from 'node:assert/strict';
import { call, secureGateway } from '../../labs/integration/http.ts';
import { replay, toolPort, type ReplaySettings } from '../replay.ts';
import { secretOf, settingsOf } from '../settings.ts';
import type { Tool } from '../tool.ts';

/** Returns the settings of a login with these arguments of Headlamp. */
function settingsIn(args: string): ReplaySettings {
  const flags = new Map(
    [...args.matchAll(/^-([\w-]+)=(.*)$/gm)].map(([, name = '', value = '']): [string, string] => [name, value]),
  );
  const flag = (name: string): string => flags.get(name) ?? '';
  return {
    issuer: flag('oidc-idp-issuer-url'),
    clientID: flag('oidc-client-id'),
    clientSecret: secretOf('headlamp'),
    redirectURL: flag('oidc-callback-url'),
    scopes: ['openid', ...flag('oidc-scopes').split(',')],
    pkce: flag('oidc-use-pkce') === 'true',
    token: flag('oidc-use-access-token') === 'true' ? 'access_token' : 'id_token',
    audience: flag('oidc-validator-client-id'),
    tokenIssuer: flag('oidc-validator-idp-issuer-url'),
  };
}

/** Returns the settings in the first block of the page, or in both blocks. */
const documented = async (blocks: 1 | 2): Promise<ReplaySettings> =>
  settingsIn(
    settingsOf('Headlamp', await toolPort())
      .slice(0, blocks)
      .join(''),
  );

/** Logs in, and sends the token to the gateway as Headlamp does. */
const logsIn = (blocks: 1 | 2) => async (): Promise<void> => {
  const { error, token, refreshed } = await replay(await documented(blocks));
  equal(error, undefined);
  for (const bearer of [token, refreshed]) {
    const { status, text } = await call(`${secureGateway()}/api/v1/nodes`, { token: bearer });
    equal(status, 200, text);
  }
};

const shipped = async (): Promise<void> => {
  const { error } = await replay({ ...(await documented(1)), pkce: false });
  match(String(error), /PKCE is required .*Headlamp -oidc-use-pkce/);
};

export const headlamp = {
  name: 'headlamp',
  build: async () => ({ version: '0.45 (replayed)', path: '' }),
  flows: {
    'sends id_tokens to the gateway with -oidc-use-pkce, and refreshes the tokens': logsIn(1),
    'sends access tokens to the gateway with -oidc-use-access-token, and refreshes the tokens': logsIn(2),
    'fails without -oidc-use-pkce, with an error that names this flag': shipped,
  },
} satisfies Tool;
