/** `POST /oauth/login`: what our page of that name sends. */
import { pagesClient } from '../accounts/built-in-clients.ts';
import type { Account, Directory } from '../accounts/directory.ts';
import { problemWith } from '../accounts/password-rules.ts';
import { isChangeable, type PasswordStore } from '../accounts/password-store.ts';
import type { Sessions } from '../accounts/sessions.ts';
import { OAuthError } from '../errors.ts';
import type { Route } from '../http/route.ts';
import { browserLogin } from './browser-login.ts';
import { required } from './form.ts';
import { cookie, loginCookie } from './pages/cookies.ts';
import { loginPage, loginPath } from './pages/login.ts';
import { formRoute, seeOther, type PageRequest } from './pages/route.ts';
import type { PasswordLogin } from './password-login.ts';

export interface LoginParts {
  readonly login: PasswordLogin;
  readonly directory: Directory;
  readonly sessions: Sessions;
  readonly passwordStore: PasswordStore;
}

/** Our own pages alone, so that nobody is led elsewhere by us. */
const isOurs = (next: string): boolean => /^\/oauth\/(authorize|device)(\?[!-~]*)?$/.test(next);

/** The request that the login was for, without what the login has fulfilled. */
function goOn(next: string): string {
  const [path = '', search = ''] = next.split('?');
  const query = new URLSearchParams(search);
  const prompt = (query.get('prompt') ?? '').split(' ').filter((one) => one !== 'login' && one !== 'select_account');
  query.delete('prompt');
  query.delete('max_age');
  const left = prompt.join(' ');
  if (left !== '') query.set('prompt', left);
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

export function loginRoute({ login, directory, sessions, passwordStore }: LoginParts): Route {
  async function changed(account: Account, password: string, current: string): Promise<Account> {
    if (!isChangeable(account))
      throw new OAuthError(
        'invalid_request',
        'the password stands in the cluster configuration object, and is changed there',
      );
    const problem = await problemWith(password, account, current);
    if (problem !== undefined) throw new OAuthError('invalid_request', `the new password ${problem}`);
    await passwordStore.change(account, password, true);
    const now = directory.account(account.username);
    if (now === undefined || now.passwordChangeRequired)
      throw new OAuthError('temporarily_unavailable', 'try again in a moment');
    return now;
  }

  async function logIn({ form, context, req, res }: PageRequest, next: string): Promise<void> {
    const username = required(form, 'username');
    const password = required(form, 'password');
    const newPassword = form.get('new_password');
    let verified = await login.verify({ username, password, client: pagesClient.name, context });
    if (verified.account.passwordChangeRequired) {
      if (newPassword === undefined) return loginPage({ req, res }, { next, username, changesPassword: true });
      verified = { account: await changed(verified.account, newPassword, password) };
    }
    const before = await browserLogin(req, { sessions, directory });
    const { refreshToken } = await login.begin(verified, { context });
    if (before !== undefined) await sessions.revoke(before.session.metadata.name);
    res.appendHeader('Set-Cookie', cookie(loginCookie, refreshToken));
    seeOther(res, goOn(next));
  }

  return formRoute({ path: loginPath, summary: 'What the login page sends' }, async (page) => {
    const { req, res, form } = page;
    const next = required(form, 'next');
    if (!isOurs(next)) throw new OAuthError('invalid_request', 'the login does not go on there');
    try {
      await logIn(page, next);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const { code: status, headers, message } = error;
      const username = form.get('username') ?? '';
      const changesPassword = form.has('new_password');
      loginPage(
        { req, res },
        { next, username, changesPassword, problem: `That did not work: ${message}.`, status, headers },
      );
    }
  });
}
