import { deepEqual, equal, match } from 'node:assert/strict';
import { replay, toolPort, type ReplaySettings } from '../replay.ts';
import { secretOf, settingsOf } from '../settings.ts';
import type { Tool } from '../tool.ts';

const attributes = ['login', 'email', 'role'] as const;

/** Returns the settings of a login with the documented section of grafana.ini. */
async function documented(): Promise<ReplaySettings> {
  const port = await toolPort();
  const keys = new Map(
    [
      ...settingsOf('Grafana')
        .join('')
        .matchAll(/^(\w+) = (.*)$/gm),
    ].map(([, name = '', value = '']) => [name, value]),
  );
  const key = (name: string): string => keys.get(name) ?? '';
  return {
    clientID: key('client_id'),
    clientSecret: secretOf('grafana'),
    // Grafana appends this path to its root_url.
    redirectURL: `http://127.0.0.1:${port}/login/generic_oauth`,
    scopes: key('scopes').split(' '),
    pkce: key('use_pkce') === 'true',
    token: 'access_token',
    authURL: key('auth_url'),
    tokenURL: key('token_url'),
    userInfoURL: key('api_url'),
    attributes: Object.fromEntries(attributes.map((name) => [name, key(`${name}_attribute_path`)])),
  };
}

const logsIn = async (): Promise<void> => {
  const { error, attributes: user } = await replay(await documented());
  equal(error, undefined);
  deepEqual(user, { login: 'admin', email: 'admin', role: 'Admin' });
};

const shipped = async (): Promise<void> => {
  const { error } = await replay({ ...(await documented()), pkce: false });
  match(String(error), /PKCE is required .*Grafana use_pkce = true/);
};

export const grafana = {
  name: 'grafana',
  build: async () => ({ version: '(replayed)', path: '' }),
  flows: {
    'logs in with use_pkce, and maps name, e-mail address and role': logsIn,
    'fails without use_pkce, with an error that names this setting': shipped,
  },
} satisfies Tool;
