/** What is refused before an OpenID provider is asked anything; what a real one says is in test/integration. */
import { describe, expect, test } from '@jest/globals';
import { ask } from '../../fakes/ask.ts';
import { Browser, formIn } from '../../fakes/browser.ts';
import { createLab, type Lab } from './lab.ts';

const provider = (name: string, displayName?: string): object => ({
  name,
  type: 'OIDC',
  displayName,
  oidc: { issuer: `https://${name}.example`, clientID: 'a', clientSecretRef: { name: 'missing', key: 'a' } },
});
const lab = (): Promise<Lab> => createLab({ identityProviders: [provider('sso', 'Our <SSO>'), provider('two')] });
const browserOf = ({ app }: Lab) => new Browser((path, options) => ask(app, path, options));
const device = '/oauth/device';

describe('the login page', () => {
  test('has a button for each provider, in the order of the configuration', async () => {
    const made = await lab();
    const { text } = await browserOf(made).open(device);
    expect([...text.matchAll(/action="([^"]*)"/g)].map(([, action]) => action)).toEqual([
      '/oauth/login',
      '/oauth/login/sso',
      '/oauth/login/two',
    ]);
    expect(text).toContain('Log in with Our &lt;SSO&gt;');
    expect(new Set(text.match(/name="form_token" value="[^"]*"/g))).toHaveProperty('size', 1);
    made.configure({});
    expect((await browserOf(made).open(device)).text).not.toContain('/oauth/login/');
  });
});

describe('the way to a provider', () => {
  test.each<[string, string, Readonly<Record<string, string>>, number]>([
    ['of a form that was not shown here', 'sso', { form_token: 'another' }, 403],
    ['that there is not', 'three', {}, 404],
    ['that would go on elsewhere', 'sso', { next: 'https://attacker.example/' }, 400],
    ['that would go on nowhere', 'sso', { next: '' }, 400],
    ['with more than a browser keeps', 'sso', { next: `/oauth/authorize?state=${'x'.repeat(2_800)}` }, 400],
    ['whose secret is missing', 'sso', {}, 503],
  ])('is refused: %s', async (_, name, changes, status) => {
    const browser = browserOf(await lab());
    const { fields } = formIn((await browser.open(device)).text);
    const { form_token = '', next = '' } = fields;
    const answer = await browser.send(`/oauth/login/${name}`, { form_token, next, ...changes });
    expect(answer.status).toBe(status);
    expect(browser.cookies.has('__Host-platform-provider')).toBe(false);
  });
});

describe('the way back', () => {
  test.each<[string, Readonly<Record<string, string>>]>([
    ['without what the browser keeps', {}],
    ['with what is none of that', { '__Host-platform-provider': 'a.b' }],
    ['with what is too old', { '__Host-platform-provider': `a.sso.1.${btoa('/oauth/device')}` }],
  ])('is refused %s', async (_, cookies) => {
    const browser = browserOf(await lab());
    await browser.open(device);
    for (const [name, value] of Object.entries(cookies)) browser.cookies.set(name, value);
    const answer = await browser.open('/oauth/callback/sso?state=a&code=b');
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('not begun here');
    expect(browser.cookies.has('__Host-platform-login')).toBe(false);
  });

  test('is there over TLS alone', async () => {
    const { app } = await lab();
    expect((await ask(app, '/oauth/callback/sso?state=a&code=b')).status).toBe(404);
  });
});
