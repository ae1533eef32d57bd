/** Tests logins at OpenID providers whose responses are faked. test/integration uses a real provider. */
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { RedirectProviders } from '../../../../src/accounts/providers/redirect-providers.ts';
import { PersonRefused } from '../../../../src/accounts/providers/person.ts';
import { serviceUnavailable } from '../../../../src/runtime/errors.ts';
import { allRecorded } from '../../../../src/http/records.ts';
import { sendRequest } from '../../../fakes/request.ts';
import { Browser, formIn } from '../../../fakes/browser.ts';
import { createLab, login, type Lab } from '../../../labs/oauth.ts';

const provider = (name: string, displayName?: string): object => ({
  name,
  type: 'OIDC',
  displayName,
  oidc: { issuer: `https://${name}.example`, clientID: 'a', clientSecretRef: { name: 'missing', key: 'a' } },
});
const lab = (): Promise<Lab> => createLab({ identityProviders: [provider('sso', 'Our <SSO>'), provider('two')] });
const browserOf = ({ app }: Lab) => new Browser((path, options) => sendRequest(app, path, options));
const device = '/oauth/device';
const again = (text: string): string | undefined => /<a href="([^"]*)">Try again/.exec(text)?.[1];
const withCode = `${device}?user_code=BCDF-GHJK`;
const kept = (until: number, to: string): string => `a.sso.${until}.${Buffer.from(to).toString('base64url')}`;

const titleOf = (text: string): string | undefined => /<h1>(.*?)<\/h1>/.exec(text)?.[1];

describe('the login page with OpenID providers', () => {
  test('the login page has a button for each OpenID provider, in the order of the configuration', async () => {
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

describe('starting a login at a provider', () => {
  test.each<[string, string, Readonly<Record<string, string>>, number]>([
    ['with a form that was not issued to this browser', 'sso', { form_token: 'another' }, 403],
    ['that does not exist', 'three', {}, 404],
    ['with a cross-site target', 'sso', { next: 'https://attacker.example/' }, 400],
    ['without a target', 'sso', { next: '' }, 400],
    [
      'with a target that does not fit in a cookie',
      'sso',
      { next: `/oauth/authorize?state=${'x'.repeat(2_800)}` },
      400,
    ],
    ['while the client secret of the provider is missing', 'sso', {}, 503],
  ])('starting a login at a provider %s is rejected', async (_, name, changes, status) => {
    const browser = browserOf(await lab());
    const { fields } = formIn((await browser.open(device)).text);
    const { form_token = '', next = '' } = fields;
    const response = await browser.send(`/oauth/login/${name}`, { form_token, next, ...changes });
    expect(response.status).toBe(status);
    expect(browser.cookies.has('__Host-platform-provider')).toBe(false);
  });
});

describe('a failed login at a provider', () => {
  test('when a login at a provider cannot start, the error page has a link to the page that required the login', async () => {
    const browser = browserOf(await lab());
    const page = await browser.open(withCode);
    const { form_token = '' } = formIn(page.text).fields;
    const failed = await browser.send('/oauth/login/sso', { form_token, next: withCode });
    expect({ status: failed.status, again: again(failed.text) }).toEqual({ status: 503, again: withCode });
    expect(formIn((await browser.open(withCode)).text).fields).toMatchObject({ next: withCode });
  });

  test.each([
    ['after the timeout links to the page that required the login', withCode, withCode],
    ['with a cross-site target has no link to the target', 'https://evil.example/', undefined],
    ['without a target has no link to start again', undefined, undefined],
  ])('the error page of a provider callback %s', async (_, to, expected) => {
    const browser = browserOf(await lab());
    await browser.open(device);
    if (to !== undefined) browser.cookies.set('__Host-platform-provider', kept(1, to));
    const failed = await browser.open('/oauth/callback/sso?state=a&code=b');
    expect({ status: failed.status, again: again(failed.text) }).toEqual({ status: 400, again: expected });
  });
});

describe('the callback of a provider', () => {
  test.each<[string, Readonly<Record<string, string>>]>([
    ['without its cookie', {}],
    ['with an invalid cookie', { '__Host-platform-provider': 'a.b' }],
    ['with an expired cookie', { '__Host-platform-provider': `a.sso.1.${btoa('/oauth/device')}` }],
  ])('the callback of a provider %s is rejected', async (_, cookies) => {
    const browser = browserOf(await lab());
    await browser.open(device);
    for (const [name, value] of Object.entries(cookies)) browser.cookies.set(name, value);
    const response = await browser.open('/oauth/callback/sso?state=a&code=b');
    expect(response.status).toBe(400);
    expect(response.text).toContain('not started in this browser');
    expect(browser.cookies.has('__Host-platform-login')).toBe(false);
  });

  test('the callback of a provider is available only over TLS', async () => {
    const { app } = await lab();
    expect((await sendRequest(app, '/oauth/callback/sso?state=a&code=b')).status).toBe(404);
  });
});

/** Creates a lab with a provider that redirects all users back and rejects all authorization codes. */
async function labWithProvider(error: Error = serviceUnavailable('the code is unknown')) {
  let state = '';
  jest.spyOn(RedirectProviders.prototype, 'authorizationURL').mockImplementation(async (_, options) => {
    ({ state } = options);
    return 'https://sso.example/authorize';
  });
  const person = jest.spyOn(RedirectProviders.prototype, 'person').mockRejectedValue(error);
  const made = await createLab({ identityProviders: [provider('sso')], loginLimit: { perAddress: 3 } });
  const browser = browserOf(made);
  const leave = async (): Promise<string> => {
    const { form_token = '', next = '' } = formIn((await browser.open(device)).text).fields;
    expect((await browser.send('/oauth/login/sso', { form_token, next })).status).toBe(200);
    return state;
  };
  const comeBack = (from = '198.51.100.1') => browser.open(`/oauth/callback/sso?state=${state}&code=guess`, { from });
  return { made, browser, person, leave, comeBack };
}

describe('a successful login at a provider', () => {
  afterEach(() => void jest.restoreAllMocks());
  const identity = { provider: 'sso', subject: '1' };
  const erin = { identity, username: 'erin', email: undefined, displayName: undefined, groups: [] };

  test('a successful login at a provider starts a login session at this server and continues to the requested page', async () => {
    const { made, browser, person, leave, comeBack } = await labWithProvider();
    const uid = await made.putUser('erin', { identities: [identity] }, false);
    person.mockResolvedValue(erin);
    await leave();
    const page = await comeBack();
    expect({ status: page.status, title: titleOf(page.text) }).toEqual({ status: 200, title: 'Authorize a device' });
    expect(browser.cookies.has('__Host-platform-provider')).toBe(false);
    expect(made.sessions.ofUser(uid).map(({ spec }) => spec)).toMatchObject([{ clientID: 'platform-pages', identity }]);
    const records = await made.loginHistories.of({ uid, username: 'erin' });
    expect(records).toMatchObject([
      { success: true, reason: 'LoggedIn', client: 'platform-pages', sourceIP: '198.51.100.1' },
    ]);
  });

  test('a successful login of a disabled user at a provider is rejected and sets no login cookie', async () => {
    const { made, browser, person, leave, comeBack } = await labWithProvider();
    await made.putUser('erin', { identities: [identity], state: 'Disabled' }, false);
    person.mockResolvedValue(erin);
    await leave();
    const page = await comeBack();
    expect({ status: page.status, title: titleOf(page.text) }).toEqual({ status: 403, title: 'Something went wrong' });
    expect(page.text).toContain('This user is disabled.');
    expect(browser.cookies.has('__Host-platform-login')).toBe(false);
  });

  test.each<[string, string, string | undefined, Error | undefined]>([
    ['LoggedIn', 'an active user', 'Active', undefined],
    ['Disabled', 'a disabled user', 'Disabled', undefined],
    ['Refused', 'an unknown user', undefined, undefined],
    ['Refused', 'an active user with invalid claims', 'Active', new PersonRefused('this person is not allowed here')],
  ])('the audit event of a login at a provider has the outcome %s for %s', async (outcome, _, state, problem) => {
    const { made, person, leave, comeBack } = await labWithProvider();
    if (state !== undefined) await made.putUser('erin', { identities: [identity], state }, false);
    if (problem === undefined) person.mockResolvedValue(erin);
    else person.mockRejectedValue(problem);
    await leave();
    await comeBack();
    await allRecorded();
    const outcomes = made.events.map(({ annotations }) => annotations?.['oauth.platform.io/login']);
    expect(outcomes.filter((one) => one !== undefined)).toEqual([outcome]);
  });

  test('a successful login at one provider is rejected at the callback of another provider', async () => {
    const { browser, person, leave } = await labWithProvider();
    const state = await leave();
    expect((await browser.open(`/oauth/callback/two?state=${state}&code=guess`)).status).toBe(400);
    expect(person).not.toHaveBeenCalled();
  });
});

describe('the page that redirects to a provider', () => {
  afterEach(() => void jest.restoreAllMocks());

  test.each([
    ['sso', 'Our &lt;SSO&gt;'],
    ['two', 'two'],
  ])(
    'the page that redirects to the provider %s redirects without a click and shows the name %s',
    async (name, shown) => {
      jest.spyOn(RedirectProviders.prototype, 'authorizationURL').mockResolvedValue('https://sso.example/?a=1&b=2');
      const browser = browserOf(await lab());
      const { form_token = '', next = '' } = formIn((await browser.open(device)).text).fields;
      const page = await browser.send(`/oauth/login/${name}`, { form_token, next });
      expect({ status: page.status, refresh: page.headers['refresh'] }).toEqual({
        status: 200,
        refresh: '0; url=https://sso.example/?a=1&b=2',
      });
      expect(page.text).toContain(`<h1>Continue to ${shown}</h1>`);
      expect(page.text).toContain('href="https://sso.example/?a=1&amp;b=2"');
    },
  );

  test.each([
    ['does not request', ''],
    ['requests', '?max_age=60'],
    ['requests', '?prompt=login'],
    ['requests', '?prompt=consent%20select_account'],
    ['does not request', '?prompt=consent'],
    ['does not request', '?state=login'],
  ])('the redirect to a provider %s a new login for /oauth/authorize%s', async (outcome, query) => {
    const options = jest
      .spyOn(RedirectProviders.prototype, 'authorizationURL')
      .mockResolvedValue('https://sso.example/');
    const browser = browserOf(await lab());
    const { form_token = '' } = formIn((await browser.open(device)).text).fields;
    await browser.send('/oauth/login/sso', { form_token, next: `/oauth/authorize${query}` });
    expect(options.mock.calls.map((call) => call[2])).toEqual([outcome === 'requests']);
  });

  test('the page that redirects to a provider supports a target of 2,800 characters', async () => {
    jest.spyOn(RedirectProviders.prototype, 'authorizationURL').mockResolvedValue('https://sso.example/');
    const browser = browserOf(await lab());
    const { form_token = '' } = formIn((await browser.open(device)).text).fields;
    const next = '/oauth/authorize?state='.padEnd(2_800, 'x');
    expect((await browser.send('/oauth/login/sso', { form_token, next })).status).toBe(200);
    expect((await browser.send('/oauth/login/sso', { form_token, next: `${next}x` })).status).toBe(400);
  });
});

describe('the callback of a provider', () => {
  afterEach(() => void jest.restoreAllMocks());

  // evidence: provider-login-state
  test('the callback of a provider rejects a cookie and a state that this server did not issue', async () => {
    const { made, person } = await labWithProvider();
    const browser = browserOf(made);
    const until = made.clock.now() + 600_000;
    const away = `own-secret.sso.${until}.${Buffer.from(device).toString('base64url')}`;
    browser.cookies.set('__Host-platform-form', 'mine');
    browser.cookies.set('__Host-platform-provider', away);
    const state = createHash('sha256').update(`state:mine:${away}`).digest('base64url');
    expect((await browser.open(`/oauth/callback/sso?state=${state}&code=guess`)).status).toBe(400);
    expect(person).not.toHaveBeenCalled();
  });

  // evidence: provider-login-cookie
  test.each<[string, (parts: string[]) => string[]]>([
    ['a later expiry', ([secret = '', name = '', until = '', ...next]) => [secret, name, `${until}0`, ...next]],
    ['another target', (parts) => [...parts.slice(0, 3), btoa('/oauth/account')]],
    ['another secret', ([, ...others]) => ['own-secret', ...others]],
  ])('the callback of a provider rejects %s in the cookie', async (_, change) => {
    const { browser, person, leave, comeBack } = await labWithProvider();
    await leave();
    const away = browser.cookies.get('__Host-platform-provider') ?? '';
    browser.cookies.set('__Host-platform-provider', change(away.split('.')).join('.'));
    expect((await comeBack()).status).toBe(400);
    browser.cookies.set('__Host-platform-provider', away);
    expect(person).not.toHaveBeenCalled();
    await comeBack();
    expect(person).toHaveBeenCalledTimes(1);
  });

  test('the callback of a provider is rejected ten minutes after the start of the login', async () => {
    const { made, person, leave, comeBack } = await labWithProvider();
    await leave();
    await made.clock.advance(600_000);
    expect((await comeBack()).status).toBe(400);
    expect(person).not.toHaveBeenCalled();
  });

  // evidence: provider-login-once
  test('a second callback of a provider for the same login is rejected', async () => {
    const { person, leave, comeBack } = await labWithProvider();
    await leave();
    expect((await comeBack()).status).toBe(503);
    expect((await comeBack()).status).toBe(400);
    expect(person).toHaveBeenCalledTimes(1);
  });

  // evidence: provider-login-limit
  test('failed callbacks of a provider are limited per address, even with a reused cookie, and do not limit password logins', async () => {
    const { made, browser, person, leave, comeBack } = await labWithProvider();
    await leave();
    const away = browser.cookies.get('__Host-platform-provider') ?? '';
    for (let guesses = 0; guesses < 3; guesses += 1) {
      browser.cookies.set('__Host-platform-provider', away);
      expect((await comeBack()).status).toBe(503);
    }
    await leave();
    const limited = await comeBack();
    expect(limited.status).toBe(429);
    expect(limited.headers['retry-after']).toMatch(/^\d+$/);
    expect(person).toHaveBeenCalledTimes(3);
    expect((await made.token(login, { from: '198.51.100.1' })).status).toBe(200);
    await leave();
    expect((await comeBack('198.51.100.2')).status).toBe(503);
  });

  test('callbacks of a provider are not limited for users whom the provider authenticates and this server rejects', async () => {
    const { leave, comeBack } = await labWithProvider(new PersonRefused('no user is linked'));
    for (let logins = 0; logins < 5; logins += 1) {
      await leave();
      expect((await comeBack()).status).toBe(403);
    }
  });
});
