import { pagesClient } from '../../accounts/directory/clients.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Subject } from '../../tokens/subject.ts';
import { formToken } from './cookies.ts';
import { html, type Html } from '../../http/response/html.ts';
import { newPasswordFields } from './login.ts';
import { problemAlert, sentence, writePage } from './page.ts';
import type { PageExchange } from './route.ts';

export interface AccountPage {
  readonly action: string;
  readonly subject: Subject;
  /** Sessions, newest first. */
  readonly sessions: readonly Session[];
  /** Name of the session of this browser. */
  readonly current: string;
  /** Reason why the password cannot be changed on this page. */
  readonly unchangeable: string | undefined;
  /** Problem of the last attempt to change the password. */
  readonly problem?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Shows the profile and the sessions of the user, and a form for a new password. */
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
    <button>Change password</button>
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
    <h2>Active sessions</h2>
    <form method="post" action="${action}">
      ${token}
      <ul>
        ${sessions.map((session) => item(session, current))}
      </ul>
      ${sessions.length < 2 ? undefined : html`<button name="end" value="others">Log out of all other sessions</button>`}
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
  // The address of a device is more useful than the address of the browser that authorized the device.
  const origin = [code?.sourceIP ?? sourceIP ?? '', userAgent].filter((text) => text !== '').join(', ');
  const logOut = html`<button name="end" value="${name}" class="second" aria-describedby="${id}">Log out</button>`;
  return html`<li>
    <div id="${id}">
      <strong>${clientID === pagesClient.name ? 'Browser' : clientID}</strong>
      <p class="hint">${origin}</p>
      <p>Logged in ${time(createdAt)}, last used ${time(status.lastUsedAt ?? createdAt)}</p>
    </div>
    ${name === current ? html`<p>Current session</p>` : logOut}
  </li>`;
}

const time = (rfc3339: string): Html =>
  html`<time datetime="${rfc3339}">${rfc3339.slice(0, 16).replace('T', ' ')} UTC</time>`;
