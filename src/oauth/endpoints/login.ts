/** `/oauth/login`: the login page for nothing else, which leads back here, and what that page sends wherever it was shown. */
import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Account } from '../../accounts/directory/account.ts';
import { OwnPassword, type OwnPasswordParts } from '../../accounts/passwords/own.ts';
import { OAuthError } from '../../runtime/errors.ts';
import type { RequestContext, Route } from '../../http/route.ts';
import { described, text } from '../../http/schema.ts';
import { beginInBrowser, browserLogin, demandOurs, goOn, type BrowserLoginParts } from '../browser-login.ts';
import type { Form } from '../form.ts';
import { oauthParameters } from '../parameters.ts';
import { confirmLogoutPath } from './logout.ts';
import { demandConfirmed, loginPath, type ShowLogin } from '../pages/login.ts';
import { logoutPage } from '../pages/notices.ts';
import { formRoute, pageRoute, type PageRequest } from '../pages/route.ts';
import { passwordRefusal } from '../password-login.ts';

export interface LoginParts extends BrowserLoginParts, OwnPasswordParts {
  readonly showLogin: ShowLogin;
}

const credentials = {
  username: described('The name of the user, or the e-mail address', text),
  password: described('The password of the user', text),
  new_password: described('Where it has to be changed', text.optional()),
  new_password_again: described('The same again', text.optional()),
};
const { parse } = oauthParameters(credentials);

export function loginRoutes(parts: LoginParts): Route[] {
  const { login, directory, sessions, showLogin } = parts;
  const ownPassword = new OwnPassword(parts);
  const client = pagesClient.name;

  async function changed(account: Account, current: string, next: string, context: RequestContext): Promise<Account> {
    const { auditID, sourceIP, log } = context;
    const refused = await ownPassword.replace(account, current, next, { client, auditID, sourceIP, log });
    if (refused !== undefined) throw passwordRefusal(refused);
    const now = directory.account(account.username);
    if (now === undefined || now.passwordChangeRequired)
      throw new OAuthError('temporarily_unavailable', 'try again in a moment');
    return now;
  }

  async function logIn(page: PageRequest, form: Form, next: string): Promise<void> {
    const { context } = page;
    const typed = parse(form);
    const { username, password, new_password: newPassword } = typed;
    let verified = await login.verify({ username, password, client, context });
    if (verified.account.passwordChangeRequired) {
      if (newPassword === undefined) return showLogin(page, { next, username, changesPassword: true });
      demandConfirmed(typed);
      verified = { account: await changed(verified.account, password, newPassword, context) };
    }
    await beginInBrowser(parts, page, verified);
    goOn(page.res, next);
  }

  const shown = pageRoute({
    path: loginPath,
    summary: 'The login page',
    async handler(page) {
      const already = await browserLogin(page, { sessions, directory });
      if (already === undefined) return showLogin(page, { next: loginPath });
      logoutPage(page, {
        title: 'You are logged in',
        action: confirmLogoutPath,
        username: already.subject.username,
        query: '',
        redirectURI: undefined,
      });
    },
  });

  const sent = formRoute({
    path: loginPath,
    summary: 'What the login page sends',
    fields: { next: described('Where it goes on', text) },
    furtherFields: credentials,
    async handler(page) {
      const { form } = page;
      const { next } = page.fields;
      demandOurs(next);
      try {
        await logIn(page, form, next);
      } catch (error) {
        if (!(error instanceof OAuthError)) throw error;
        const { code: status, headers, message } = error;
        const username = form.get('username') ?? '';
        const changesPassword = form.has('new_password');
        const problem = `That did not work: ${message}.`;
        showLogin(page, { next, username, changesPassword, problem, status, headers });
      }
    },
  });
  return [shown, sent];
}
