import { formToken } from './cookies.ts';
import { html, type Html } from '../../http/response/html.ts';
import { problemAlert, writePage } from './page.ts';
import type { PageExchange } from './route.ts';
import { OAuthError } from '../../runtime/errors.ts';

/** The fields of a form for a new password. */
export const newPasswordFields: Html = html`<label for="new-password">New password</label>
  <input
    id="new-password"
    name="new_password"
    type="password"
    autocomplete="new-password"
    required
    minlength="8"
    aria-describedby="rules"
  />
  <p class="hint" id="rules">At least 8 characters, and not one of the common ones.</p>
  <label for="new-password-again">The same again</label>
  <input id="new-password-again" name="new_password_again" type="password" autocomplete="new-password" required />`;

/** Throws unless the new password was typed twice: a typing error in a hidden field would lock the user out. */
export function demandConfirmed(typed: {
  readonly new_password?: string | undefined;
  readonly new_password_again?: string | undefined;
}): void {
  if (typed.new_password !== typed.new_password_again)
    throw new OAuthError('invalid_request', 'the new password is not the same both times');
}

export const loginPath = '/oauth/login';

interface LoginPage {
  /** Where the login goes on: a path of ours. */
  readonly next: string;
  readonly username?: string;
  /** What was wrong with the last attempt. */
  readonly problem?: string;
  /** The user must choose a new password with it. */
  readonly changesPassword?: boolean;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Where a client has people sent in the end, if it is a client that they log in for. */
function destinationOf(next: string): string | undefined {
  const uri = new URLSearchParams(next.slice(next.indexOf('?') + 1)).get('redirect_uri') ?? '';
  return URL.canParse(uri) ? uri : undefined;
}

export type ShowLogin = (around: PageExchange, page: LoginPage) => void;

/** Where people may log in elsewhere. */
interface Elsewhere {
  readonly name: string;
  readonly displayName?: string | undefined;
}

/** The login page, with a button for each OpenID provider that there is by then. */
export const loginPages =
  (providers: () => readonly Elsewhere[]): ShowLogin =>
  (around, page) =>
    loginPage(around, page, page.changesPassword === true ? [] : providers());

/** Asks for a username and a password, and where it is required for a new one. */
function loginPage({ req, res }: PageExchange, page: LoginPage, providers: readonly Elsewhere[]): void {
  const { next, username = '', problem, changesPassword = false, status, headers } = page;
  const token = formToken(req, res);
  const elsewhere = providers.map(
    ({ name, displayName = name }) =>
      html`<form method="post" action="${loginPath}/${name}">
        ${token}
        <input type="hidden" name="next" value="${next}" />
        <button class="second">Log in with ${displayName}</button>
      </form>`,
  );
  // Screen readers may pass over what a page begins with, but not over what describes where the cursor is.
  const focus = html` autofocus${problem === undefined ? undefined : html` aria-describedby="problem"`}`;
  const content = html`${problemAlert(problem)}
    ${changesPassword ? html`<p>Your password must be changed before you go on.</p>` : undefined}
    <form method="post" action="${loginPath}">
      ${token}
      <input type="hidden" name="next" value="${next}" />
      <label for="username">Username or e-mail address</label>
      <input
        id="username"
        name="username"
        value="${username}"
        autocomplete="username"
        autocapitalize="none"
        spellcheck="false"
        required${username === '' ? focus : undefined}
      />
      <label for="password">${changesPassword ? 'Current password' : 'Password'}</label>
      <input
        id="password"
        name="password"
        type="password"
        autocomplete="current-password"
        required${username === '' ? undefined : focus}
      />
      ${changesPassword ? newPasswordFields : undefined}
      <button>${changesPassword ? 'Change and log in' : 'Log in'}</button>
    </form>
    ${elsewhere}`;
  writePage(res, {
    title: changesPassword ? 'Choose a new password' : 'Log in',
    content,
    leadsTo: destinationOf(next),
    ...(status === undefined ? {} : { status }),
    ...(headers === undefined ? {} : { headers }),
  });
}
