import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Subject } from '../../tokens/subject.ts';
import { formToken } from './cookies.ts';
import { html, type Html } from '../../http/response/html.ts';
import { newPasswordFields } from './login.ts';
import { problemAlert, writePage } from './page.ts';
import type { PageExchange } from './route.ts';

export interface AccountPage {
  readonly action: string;
  readonly subject: Subject;
  /** The newest first. */
  readonly sessions: readonly Session[];
  /** The sid of the login to this page. */
  readonly current: string;
  /** Why the password is not changed here. */
  readonly unchangeable: string | undefined;
  /** What was wrong with the last attempt to change it. */
  readonly problem?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Shows somebody who they are, and lets them change their password and end their sessions. */
export function accountPage({ req, res }: PageExchange, page: AccountPage): void {
  const { action, subject, sessions, current, unchangeable, problem, status, headers } = page;
  const { username, displayName, email, groups } = subject;
  const token = formToken(req, res);
  const facts = [
    ['Username', username],
    ['Name', displayName ?? ''],
    ['E-mail address', email ?? ''],
    ['Groups', groups.join(', ')],
  ].filter(([, value]) => value !== '');
  const focus = problem === undefined ? undefined : html` autofocus aria-describedby="problem"`;
  const passwordForm = html`<form method="post" action="${action}">
    ${token}
    <label for="password">Current password</label>
    <input id="password" name="password" type="password" autocomplete="current-password" required${focus} />
    ${newPasswordFields}
    <button>Change the password</button>
  </form>`;
  const content = html`<dl>
      ${facts.map(
        ([name, value]) =>
          html`<dt>${name}</dt>
            <dd>${value}</dd>`,
      )}
    </dl>
    <p><a href="/oauth/logout">Log out</a></p>
    <h2>Password</h2>
    ${problemAlert(problem)} ${unchangeable === undefined ? passwordForm : html`<p>${sentence(unchangeable)}</p>`}
    <h2>Where you are logged in</h2>
    <form method="post" action="${action}">
      ${token}
      <ul>
        ${sessions.map((session) => item(session, current))}
      </ul>
      ${sessions.length < 2 ? undefined : html`<button name="end" value="others">End all others</button>`}
    </form>`;
  writePage(res, {
    title: 'Your account',
    content,
    ...(status === undefined ? {} : { status }),
    ...(headers === undefined ? {} : { headers }),
  });
}

function item({ metadata: { name }, spec, status }: Session, current: string): Html {
  const { clientID, sourceIP, userAgent = '', createdAt, code } = spec;
  const id = `session-${name}`;
  // Where a device asked from says more than where somebody let it in.
  const where = [code?.sourceIP ?? sourceIP ?? '', userAgent].filter((text) => text !== '').join(', ');
  const end = html`<button name="end" value="${name}" class="second" aria-describedby="${id}">End</button>`;
  return html`<li>
    <div id="${id}">
      <strong>${clientID === pagesClient.name ? 'Browser' : clientID}</strong>
      <p class="hint">${where}</p>
      <p>Since ${time(createdAt)}, last used ${time(status.lastUsedAt ?? createdAt)}</p>
    </div>
    ${name === current ? html`<p>This is where you are now.</p>` : end}
  </li>`;
}

const time = (rfc3339: string): Html =>
  html`<time datetime="${rfc3339}">${rfc3339.slice(0, 16).replace('T', ' ')} UTC</time>`;

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
