import type { Response } from 'express';
import { html } from '../../http/response/html.ts';
import { writePage } from './page.ts';
import type { OAuthError, StatusError } from '../../runtime/errors.ts';
import type { PageRequest, PageExchange } from './route.ts';
import { formToken } from './cookies.ts';

interface LogoutQuestion {
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

/**
 * Sends the browser elsewhere by a page of its own. A redirect would be the end of a form that was sent, and browsers hold all hosts
 * that it leads through against `form-action`: those of a provider nobody knows.
 */
export function leavingPage(res: Response, { to, name }: { readonly to: string; readonly name: string }): void {
  writePage(res, {
    title: `On to ${name}`,
    content: html`<p>You log in there and come back. <a href="${to}" autofocus>Go on</a> if nothing happens.</p>`,
    headers: { Refresh: `0; url=${to}` },
  });
}

/** What went wrong, for people. `again`: the path of ours where they may try again. */
export function failurePage(
  { res, context }: Pick<PageRequest, 'res' | 'context'>,
  { code: status, headers, message, cause }: OAuthError | StatusError,
  again?: string,
): void {
  if (status > 500) context.log.error(message, { auditID: context.auditID, error: cause });
  const content = html`<p class="problem" role="alert">${message}</p>
    ${again === undefined ? undefined : html`<p><a href="${again}">Try again</a></p>`}
    <p class="hint">Request ${context.auditID}</p>`;
  writePage(res, { title: 'That did not work', content, status, headers });
}

/** The end of something. `on`: a page of ours to go on to. */
export function donePage(
  res: Response,
  title: string,
  text: string,
  on?: { readonly path: string; readonly name: string },
): void {
  const content = html`<p role="status">${text}</p>
    ${on && html`<p><a href="${on.path}">${on.name}</a></p>`}`;
  writePage(res, { title, content });
}
