import type { Response } from 'express';
import { html } from '../../http/response/html.ts';
import { writePage } from './page.ts';

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
