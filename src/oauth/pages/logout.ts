import { formToken } from './form-token.ts';
import { html } from '../../http/response/html.ts';
import { writePage } from './page.ts';
import type { PageExchange } from './route.ts';

export interface LogoutQuestion {
  readonly title: string;
  readonly action: string;
  readonly username: string;
  /** The logout request, which the answer brings back. */
  readonly query: string;
  readonly redirectURI: string | undefined;
}

/** Says who is logged in, and lets them log out. */
export function logoutPage({ req, res }: PageExchange, question: LogoutQuestion): void {
  const { title, action, username, query, redirectURI } = question;
  const content = html`<p>You are logged in as <strong>${username}</strong>.</p>
    <form method="post" action="${action}">
      ${formToken(req, res)}
      <input type="hidden" name="request" value="${query}" />
      <button>Log out</button>
    </form>`;
  writePage(res, { title, content, leadsTo: redirectURI });
}
