/**
 * The layout of all pages. The server renders pages without scripts, so that the Content-Security-Policy can forbid
 * nearly everything.
 */
import type { Response } from 'express';
import { html, type Html } from '../../http/response/html.ts';
import { endWith } from '../../http/response/write.ts';
import { styleElement, styleHash } from './style.ts';

export interface HTMLPage {
  readonly title: string;
  readonly content: Html;
  /** Status; 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /**
   * URI outside this server to which a form of the page is allowed to redirect. Browsers check such redirects against
   * `form-action`.
   */
  readonly formTarget?: string | undefined;
}

/**
 * Returns source expressions (Content Security Policy 3, section 2.3.1) for a redirect to the URI: its origin, or its
 * scheme if the origin cannot be expressed. The expressions also allow all https addresses, because browsers check
 * further redirects by the client too.
 */
function sourcesOf(uri: string): string {
  const { origin, hostname, protocol } = new URL(uri);
  if (protocol === 'https:') return protocol;
  return `https: ${origin === 'null' || hostname.startsWith('[') ? protocol : origin}`;
}

const policy = (formTarget: string | undefined): string =>
  [
    "default-src 'none'",
    `style-src ${styleHash}`,
    `form-action 'self'${formTarget === undefined ? '' : ` ${sourcesOf(formTarget)}`}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** Turns an error message into a sentence. A parameter name at the start of the message is not capitalized. */
export function sentence(message: string): string {
  const start = /^[a-z]+\b(?![_:])/.test(message) ? message.slice(0, 1).toUpperCase() : message.slice(0, 1);
  return `${start}${message.slice(1)}${/[.?!]$/.test(message) ? '' : '.'}`;
}

/** Shows the problem of the last attempt. Inputs refer to this element with `aria-describedby`. */
export const problemAlert = (problem: string | undefined): Html | undefined =>
  problem === undefined ? undefined : html`<p class="problem" role="alert" id="problem">${problem}</p>`;

export function writePage(res: Response, { title, content, status = 200, headers = {}, formTarget }: HTMLPage): void {
  const { text } = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${styleElement}
      </head>
      <body>
        <main>
          <section>
            <h1>${title}</h1>
            ${content}
          </section>
        </main>
      </body>
    </html> `;
  const all = {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': policy(formTarget),
    'X-Frame-Options': 'DENY',
    // Without a referrer policy, browsers send "Origin: null" with the forms of these pages.
    'Referrer-Policy': 'same-origin',
    ...headers,
  };
  res.statusCode = status;
  for (const [name, value] of Object.entries(all)) res.setHeader(name, value);
  endWith(res, text);
}
