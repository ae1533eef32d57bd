import { formToken } from './cookies.ts';
import { html, type Html } from '../../http/response/html.ts';
import { problemAlert, writePage } from './page.ts';
import type { PageExchange } from './route.ts';
import { OAuthError } from '../../runtime/errors.ts';

/** Fields for a new password. */
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
  <p class="hint" id="rules">At least 8 characters, and not a common password.</p>
  <label for="new-password-again">Confirm new password</label>
  <input id="new-password-again" name="new_password_again" type="password" autocomplete="new-password" required />`;

/**
 * Throws unless both entries of the new password are equal, because a typing error in a masked field would lock out the
 * user.
 */
export function assertConfirmed(typed: {
  readonly new_password?: string | undefined;
  readonly new_password_again?: string | undefined;
}): void {
  if (typed.new_password !== typed.new_password_again)
    throw new OAuthError('invalid_request', 'the new passwords do not match');
}

export const loginPath = '/oauth/login';

interface LoginPage {
  /** Path of this server to return to after the login. */
  readonly next: string;
  readonly username?: string;
  /** Problem of the last attempt. */
  readonly problem?: string;
  /** True if the user must choose a new password. */
  readonly changesPassword?: boolean;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns the redirect URI of the client for which the user logs in, if any. */
function destinationOf(next: string): string | undefined {
  const uri = new URLSearchParams(next.slice(next.indexOf('?') + 1)).get('redirect_uri') ?? '';
  return URL.canParse(uri) ? uri : undefined;
}

export type ShowLogin = (exchange: PageExchange, page: LoginPage) => void;

interface ProviderButton {
  readonly name: string;
  readonly displayName?: string | undefined;
}

/** Returns a function that shows the login page, with a button for each currently configured OpenID provider. */
export const loginPages =
  (providers: () => readonly ProviderButton[]): ShowLogin =>
  (exchange, page) =>
    loginPage(exchange, page, page.changesPassword === true ? [] : providers());

/** Shows fields for a username and a password. Also shows fields for a new password if one is required. */
function loginPage({ req, res }: PageExchange, page: LoginPage, providers: readonly ProviderButton[]): void {
  const { next, username = '', problem, changesPassword = false, status, headers } = page;
  const token = formToken(req, res);
  const buttons = providers.map(
    ({ name, displayName = name }) =>
      html`<form method="post" action="${loginPath}/${name}">
        ${token}
        <input type="hidden" name="next" value="${next}" />
        <button class="second">Log in with ${displayName}</button>
      </form>`,
  );
  // Screen readers may skip the start of a page, but they read the description of the focused input.
  const focus = html` autofocus${problem === undefined ? undefined : html` aria-describedby="problem"`}`;
  const content = html`${problemAlert(problem)}
    ${changesPassword ? html`<p>You must change your password to continue.</p>` : undefined}
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
      <button>${changesPassword ? 'Change password and log in' : 'Log in'}</button>
    </form>
    ${buttons}`;
  writePage(res, {
    title: changesPassword ? 'Choose a new password' : 'Log in',
    content,
    formTarget: destinationOf(next),
    ...(status === undefined ? {} : { status }),
    ...(headers === undefined ? {} : { headers }),
  });
}
