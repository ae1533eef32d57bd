import type { OAuthError, StatusError } from '../../runtime/errors.ts';
import { html } from '../../http/response/html.ts';
import { writePage } from './page.ts';
import type { PageRequest } from './route.ts';

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
