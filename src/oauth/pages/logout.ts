import { formToken } from './form-token.ts';
import { html } from './html.ts';
import { writePage } from './page.ts';
import type { Around } from './route.ts';

export interface LogoutQuestion {
  readonly action: string;
  readonly username: string;
  /** The logout request, which the answer brings back. */
  readonly query: string;
  readonly redirectURI: string | undefined;
}

/** Asks whether the user really wants to log out. */
export function logoutPage({ req, res }: Around, { action, username, query, redirectURI }: LogoutQuestion): void {
  const content = html`<p>You are logged in as <strong>${username}</strong>.</p>
    <form method="post" action="${action}">
      ${formToken(req, res)}
      <input type="hidden" name="request" value="${query}" />
      <button>Log out</button>
    </form>`;
  writePage(res, { title: 'Log out?', content, leadsTo: redirectURI });
}
