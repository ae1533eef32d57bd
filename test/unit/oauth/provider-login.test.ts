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
const again = (text: string): string | undefined => /<a href="([^"]*)">Try again/.exec(text)?.[1];
const withCode = `${device}?user_code=BCDF-GHJK`;
const kept = (until: number, to: string): string => `a.sso.${until}.${Buffer.from(to).toString('base64url')}`;

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

describe('whom the login failed for', () => {
  test('on the way is led back to what it was for', async () => {
    const browser = browserOf(await lab());
    const page = await browser.open(withCode);
    const { form_token = '' } = formIn(page.text).fields;
    const failed = await browser.send('/oauth/login/sso', { form_token, next: withCode });
    expect({ status: failed.status, again: again(failed.text) }).toEqual({ status: 503, again: withCode });
    expect(formIn((await browser.open(withCode)).text).fields).toMatchObject({ next: withCode });
  });

  test.each([
    ['after too long', withCode, withCode],
    ['with a way that is not ours', 'https://evil.example/', undefined],
    ['with no way at all', undefined, undefined],
  ])('on the way back %s is led to %s', async (_, to, expected) => {
    const browser = browserOf(await lab());
    await browser.open(device);
    if (to !== undefined) browser.cookies.set('__Host-platform-provider', kept(1, to));
    const failed = await browser.open('/oauth/callback/sso?state=a&code=b');
    expect({ status: failed.status, again: again(failed.text) }).toEqual({ status: 400, again: expected });
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
