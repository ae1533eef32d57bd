import type { Response } from 'express';
import { html } from '../../http/response/html.ts';
import { writePage } from './page.ts';

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
