/** The frame of every page: server-rendered, without scripts, so that the policy can forbid nearly everything. */
import type { Response } from 'express';
import { html, type Html } from '../../http/response/html.ts';
import { endWith } from '../../http/response/write.ts';
import { styleElement, styleHash } from './style.ts';

export interface HTMLPage {
  readonly title: string;
  readonly content: Html;
  /** 200 unless stated. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Where a form of the page may send people in the end, beside our own pages: browsers hold redirects against `form-action`. */
  readonly leadsTo?: string | undefined;
}

/**
 * Source expressions (Content Security Policy 3, section 2.3.1). Browsers hold also those redirects against the policy with which the
 * client sends people on, to any https address; before that they go to it, or to its scheme where an origin cannot be said.
 */
function sourcesOf(uri: string): string {
  const { origin, hostname, protocol } = new URL(uri);
  if (protocol === 'https:') return protocol;
  return `https: ${origin === 'null' || hostname.startsWith('[') ? protocol : origin}`;
}

const policy = (leadsTo: string | undefined): string =>
  [
    "default-src 'none'",
    `style-src ${styleHash}`,
    `form-action 'self'${leadsTo === undefined ? '' : ` ${sourcesOf(leadsTo)}`}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** What was wrong with the last attempt; inputs name it as what describes them. */
export const problemAlert = (problem: string | undefined): Html | undefined =>
  problem === undefined ? undefined : html`<p class="problem" role="alert" id="problem">${problem}</p>`;

export function writePage(res: Response, { title, content, status = 200, headers = {}, leadsTo }: HTMLPage): void {
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
    'Content-Security-Policy': policy(leadsTo),
    'X-Frame-Options': 'DENY',
    // Without any, browsers say "null" for the origin of our own forms.
    'Referrer-Policy': 'same-origin',
    ...headers,
  };
  res.statusCode = status;
  for (const [name, value] of Object.entries(all)) res.setHeader(name, value);
  endWith(res, text);
}
