import type { Response } from 'express';
import { html } from './html.ts';
import { writePage } from './page.ts';

/** The end of something. */
export const donePage = (res: Response, title: string, text: string): void =>
  writePage(res, { title, content: html`<p role="status">${text}</p>` });
