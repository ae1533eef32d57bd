import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

test('/readyz?verbose lists the checks of all components in the documented order', async () => {
  const { access_token: token } = JSON.parse((await lab.token(login)).text) as { readonly access_token: string };
  const { text } = await lab.gateway('/readyz?verbose', { headers: { authorization: `Bearer ${token}` } });
  const names = [...text.matchAll(/^\[\+\](\S+) ok/gm)].map(([, name]) => name);
  expect(names).toEqual([
    'configuration',
    'users',
    'sessions',
    'identity-providers',
    'request-header-ca',
    'catalogue',
    'logs',
    'shutdown',
  ]);
});
