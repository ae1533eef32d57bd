import { formToken } from './cookies.ts';
import { html, type Html } from '../../http/response/html.ts';
import { writePage } from './page.ts';
import type { PageExchange } from './route.ts';

/** What a scope lets a client do, as people are asked about it. */
const meanings: Readonly<Record<string, string>> = {
  openid: 'know who you are',
  profile: 'see your name',
  email: 'see your e-mail address',
  groups: 'see the groups you are in',
  offline_access: 'stay logged in for you while you are away',
};

/** Whatever the scope: a token is good for what its user may do. */
export const scopeList = (scope: string | undefined) =>
  html`<ul>
    <li>do in the platform and its cluster what you may do</li>
    ${(scope?.split(' ') ?? []).map((one) => html`<li>${meanings[one] ?? one}</li>`)}
  </ul>`;

/** Asks yes or no: a form whose answer brings the hidden field back. */
export const decisionForm = ({ req, res }: PageExchange, action: string, name: string, value: string): Html =>
  html`<form method="post" action="${action}">
    ${formToken(req, res)}
    <input type="hidden" name="${name}" value="${value}" />
    <button name="decision" value="allow">Allow</button>
    <button name="decision" value="deny" class="second">Refuse</button>
  </form>`;

export interface ConsentPage {
  readonly action: string;
  readonly client: string;
  readonly redirectURI: string;
  readonly scope: string | undefined;
  readonly username: string;
  /** The authorization request, which the answer brings back. */
  readonly query: string;
}

/** Asks the user whether a client may have a token. */
export function consentPage(around: PageExchange, page: ConsentPage): void {
  const { action, client, redirectURI, scope, username, query } = page;
  const { host, protocol } = new URL(redirectURI);
  const content = html`<p>You are logged in as <strong>${username}</strong>. <strong>${client}</strong> wants to</p>
    ${scopeList(scope)}
    <p class="hint">
      You will be sent to ${host === '' ? protocol : host}. Allow it only if you have just begun this yourself.
    </p>
    ${decisionForm(around, action, 'request', query)}`;
  writePage(around.res, { title: `Let ${client} in?`, content, leadsTo: redirectURI });
}
