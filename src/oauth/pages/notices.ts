import type { Response } from 'express';
import { html } from '../../http/response/html.ts';
import { sentence, writePage } from './page.ts';
import type { OAuthError, StatusError } from '../../runtime/errors.ts';
import type { PageRequest, PageExchange } from './route.ts';
import { formToken } from './cookies.ts';

interface LogoutPage {
  readonly title: string;
  readonly action: string;
  readonly username: string;
  /** Query of the logout request, which the form submits. */
  readonly query: string;
  readonly redirectURI: string | undefined;
}

/** Shows the user who is logged in, and a button to log out. */
export function logoutPage({ req, res }: PageExchange, page: LogoutPage): void {
  const { title, action, username, query, redirectURI } = page;
  const content = html`<p>You are logged in as <strong>${username}</strong>.</p>
    <form method="post" action="${action}">
      ${formToken(req, res)}
      <input type="hidden" name="request" value="${query}" />
      <button>Log out</button>
    </form>`;
  writePage(res, { title, content, formTarget: redirectURI });
}

/**
 * Sends the browser to an identity provider by a page instead of a redirect. Browsers check every redirect after a form
 * against `form-action`, and the hosts through which a provider redirects are unknown.
 */
export function redirectPage(res: Response, { url, name }: { readonly url: string; readonly name: string }): void {
  writePage(res, {
    title: `Continue to ${name}`,
    content: html`<p>
      You are being redirected to ${name} to log in. If nothing happens, <a href="${url}" autofocus>continue</a>.
    </p>`,
    headers: { Refresh: `0; url=${url}` },
  });
}

/** Shows an error. `again`: path of the page at which the user can try again. */
export function failurePage(
  { res, context }: Pick<PageRequest, 'res' | 'context'>,
  { code: status, headers, message, cause }: OAuthError | StatusError,
  again?: string,
): void {
  if (status > 500) context.log.error(message, { auditID: context.auditID, error: cause });
  const content = html`<p class="problem" role="alert">${sentence(message)}</p>
    ${again === undefined ? undefined : html`<p><a href="${again}">Try again</a></p>`}
    <p class="hint">Request ID: ${context.auditID}</p>`;
  writePage(res, { title: 'Something went wrong', content, status, headers });
}

/** Shows a confirmation. `link`: a page of this server to continue with. */
export function donePage(
  res: Response,
  title: string,
  text: string,
  link?: { readonly path: string; readonly name: string },
): void {
  const content = html`<p role="status">${text}</p>
    ${link && html`<p><a href="${link.path}">${link.name}</a></p>`}`;
  writePage(res, { title, content });
}
