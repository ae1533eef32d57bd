/** Serves `/oauth/account`: profile, password and sessions of the user who is logged in to this browser. */
import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Account } from '../../accounts/directory/account.ts';
import { loginOf, loginsOf } from '../../accounts/directory/subjects.ts';
import { changeableHere, OwnPassword, type OwnPasswordParts } from '../../accounts/passwords/own.ts';
import { OAuthError } from '../../runtime/errors.ts';
import type { Route } from '../../http/route.ts';
import { described, text } from '../../http/schema.ts';
import {
  accountPath,
  browserLogin,
  logInBrowser,
  type BrowserLogin,
  type BrowserLoginParts,
} from '../browser-login.ts';
import type { Form } from '../form.ts';
import { oauthParameters } from '../parameters.ts';
import { accountPage } from '../pages/account.ts';
import { donePage } from '../pages/notices.ts';
import { sentence } from '../pages/page.ts';
import { assertConfirmed, type ShowLogin } from '../pages/login.ts';
import { formRoute, pageRoute, seeOther, type PageRequest } from '../pages/route.ts';
import { passwordRefusal } from '../password-login.ts';

export interface AccountEndpointParts extends BrowserLoginParts, OwnPasswordParts {
  readonly showLogin: ShowLogin;
}

const passwordChange = {
  password: described('Current password; required unless `end` is set', text),
  new_password: described('New password: at least 8 characters, and not a common one', text),
  new_password_again: described('New password again, to confirm it', text),
};
const { parse } = oauthParameters(passwordChange);

interface AccountLogin extends BrowserLogin {
  readonly account: Account;
}

/**
 * Revokes the session `target` of the user. If `target` is `others`, revokes all sessions except the current session.
 */
async function revoke(
  parts: AccountEndpointParts,
  page: PageRequest,
  { session, account }: AccountLogin,
  target: string,
): Promise<void> {
  const { sessions } = parts;
  const { auditID, log } = page.context;
  const { username, uid } = account;
  let revoked = 0;
  if (target === 'others')
    revoked = await sessions.revokeAll({ userName: username, userUID: uid }, session.metadata.name);
  else if ((await loginOf(account, target, parts)) !== undefined) {
    await sessions.revoke(target);
    revoked = 1;
  }
  log.info('sessions revoked', { auditID, user: username, by: username, sessions: revoked });
  seeOther(page.res, accountPath);
}

export function accountRoutes(parts: AccountEndpointParts): Route[] {
  const { directory, showLogin } = parts;
  const ownPassword = new OwnPassword(parts);

  /** Calls `run` with the login of this browser, or shows the login page if there is no login. */
  async function withLogin(page: PageRequest, run: (login: AccountLogin) => void | Promise<void>): Promise<void> {
    const login = await browserLogin(page, parts);
    const account = login && directory.account(login.subject.username);
    if (login === undefined || account === undefined) showLogin(page, { next: accountPath });
    else await run({ ...login, account });
  }

  function show(page: PageRequest, { session, subject, account }: AccountLogin, refused?: OAuthError): void {
    const changeable = changeableHere(account, directory);
    accountPage(page, {
      action: accountPath,
      subject,
      sessions: loginsOf(account, parts),
      current: session.metadata.name,
      unchangeable: typeof changeable === 'string' ? changeable : undefined,
      ...(refused && {
        problem: sentence(refused.message),
        status: refused.code,
        headers: refused.headers,
      }),
    });
  }

  async function changePassword(page: PageRequest & { readonly form: Form }, { account }: AccountLogin): Promise<void> {
    const { form, res, context } = page;
    const { auditID, sourceIP, log } = context;
    const typed = parse(form);
    assertConfirmed(typed);
    const from = { client: pagesClient.name, auditID, sourceIP, log };
    const refused = await ownPassword.change(account, typed.password, typed.new_password, from);
    if (refused !== undefined) throw passwordRefusal(refused);
    const now = directory.account(account.username);
    // The change revokes all logins with the previous password, including the login of this browser.
    if (now !== undefined && (await browserLogin(page, parts)) === undefined)
      await logInBrowser(parts, page, { account: now });
    const notice = 'All other sessions that were started with the old password are logged out.';
    donePage(res, 'Password changed', notice, { path: accountPath, name: 'Back to your account' });
  }

  return [
    pageRoute({
      path: accountPath,
      summary: 'Show the account page',
      description:
        'Shows the user, a form for a new password, and the sessions. If the user is not logged in, the login page is shown instead.',
      handler: (page) => withLogin(page, (login) => show(page, login)),
    }),
    formRoute({
      path: accountPath,
      summary: 'Change the password or revoke sessions',
      description:
        'Receives the forms of the account page. A new password revokes all sessions that were started with the old ' +
        'password, and logs this browser in again. A password that is managed by an identity provider or in the ' +
        'cluster configuration cannot be changed here.',
      fields: {
        end: described(
          'Session to revoke, or `others` for all sessions except the login of this browser',
          text.optional(),
        ),
      },
      furtherFields: passwordChange,
      handler: (page) =>
        withLogin(page, async (login) => {
          if (page.fields.end !== undefined) return await revoke(parts, page, login, page.fields.end);
          try {
            await changePassword(page, login);
          } catch (error) {
            if (!(error instanceof OAuthError)) throw error;
            show(page, login, error);
          }
        }),
    }),
  ];
}
