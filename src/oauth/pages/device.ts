import { decisionForm, scopeList } from './consent.ts';
import { formToken } from './cookies.ts';
import { html } from '../../http/response/html.ts';
import { problemAlert, writePage } from './page.ts';
import type { PageExchange } from './route.ts';

/** Asks for the code that a device shows. */
export function userCodePage(
  { req, res }: PageExchange,
  { action, userCode, problem, status = 200 }: { action: string; userCode: string; problem?: string; status?: number },
): void {
  const content = html`${problemAlert(problem)}
    <form method="post" action="${action}">
      ${formToken(req, res)}
      <label for="user-code">The code that your device shows</label>
      <input
        id="user-code"
        name="user_code"
        value="${userCode}"
        autocomplete="off"
        autocapitalize="characters"
        spellcheck="false"
        required
        autofocus${problem === undefined ? undefined : html` aria-describedby="problem"`}
      />
      <button>Go on</button>
    </form>`;
  writePage(res, { title: 'Let a device in', content, status });
}

export interface DeviceConsent {
  readonly action: string;
  readonly userCode: string;
  readonly client: string;
  readonly scope: string | undefined;
  /** Where the device asked from. */
  readonly sourceIP: string;
  readonly username: string;
}

/** RFC 8628 section 5.4: the user sees what is let in, so that nobody is talked into typing in the code of another. */
export function deviceConsentPage(around: PageExchange, consent: DeviceConsent): void {
  const { action, userCode, client, scope, sourceIP, username } = consent;
  const content = html`<p>
      You are logged in as <strong>${username}</strong>. A device at the address ${sourceIP} that uses
      <strong>${client}</strong> wants to
    </p>
    ${scopeList(scope)}
    <p>Allow it only if it is yours, is before you and shows <strong>${userCode}</strong>.</p>
    ${decisionForm(around, action, 'user_code', userCode)}`;
  writePage(around.res, { title: 'Let this device in?', content });
}
