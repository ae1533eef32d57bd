import { formToken } from './cookies.ts';
import { html, type Html } from '../../http/response/html.ts';
import { writePage } from './page.ts';
import type { PageExchange } from './route.ts';

/** Descriptions of the scopes for users. */
const permissions: Readonly<Record<string, string>> = {
  openid: 'Identify you',
  profile: 'See your name',
  email: 'See your e-mail address',
  groups: 'See your groups',
  offline_access: 'Stay logged in while you are away',
};

/** Lists the permissions of a client. Tokens have all rights of their user, regardless of the scope. */
export const permissionList = (scope: string | undefined) =>
  html`<ul>
    <li>Act on your behalf with all your permissions in the platform and its cluster</li>
    ${(scope?.split(' ') ?? []).map((one) => html`<li>${permissions[one] ?? one}</li>`)}
  </ul>`;

/** Returns a form in which the user allows or denies a request. The form also submits a hidden field. */
export const decisionForm = ({ req, res }: PageExchange, action: string, name: string, value: string): Html =>
  html`<form method="post" action="${action}">
    ${formToken(req, res)}
    <input type="hidden" name="${name}" value="${value}" />
    <button name="decision" value="allow">Allow</button>
    <button name="decision" value="deny" class="second">Deny</button>
  </form>`;

export interface ConsentPage {
  readonly action: string;
  readonly client: string;
  readonly redirectURI: string;
  readonly scope: string | undefined;
  readonly username: string;
  /** Query of the authorization request, which the form submits. */
  readonly query: string;
}

/** Asks the user to allow or deny the request of a client. */
export function consentPage(exchange: PageExchange, page: ConsentPage): void {
  const { action, client, redirectURI, scope, username, query } = page;
  const { host, protocol } = new URL(redirectURI);
  const content = html`<p>
      You are logged in as <strong>${username}</strong>. <strong>${client}</strong> will be able to:
    </p>
    ${permissionList(scope)}
    <p class="hint">
      You will be redirected to ${host === '' ? protocol : host}. Allow this only if you started this login yourself.
    </p>
    ${decisionForm(exchange, action, 'request', query)}`;
  writePage(exchange.res, { title: `Authorize ${client}?`, content, formTarget: redirectURI });
}
