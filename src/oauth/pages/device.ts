import { decisionForm, permissionList } from './consent.ts';
import { formToken } from './cookies.ts';
import { html } from '../../http/response/html.ts';
import { problemAlert, writePage } from './page.ts';
import type { PageExchange } from './route.ts';

/** Shows a form for the code of a device. */
export function userCodePage(
  { req, res }: PageExchange,
  { action, userCode, problem, status = 200 }: { action: string; userCode: string; problem?: string; status?: number },
): void {
  const content = html`${problemAlert(problem)}
    <form method="post" action="${action}">
      ${formToken(req, res)}
      <label for="user-code">Code shown on your device</label>
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
      <button>Continue</button>
    </form>`;
  writePage(res, { title: 'Authorize a device', content, status });
}

export interface DeviceConsent {
  readonly action: string;
  readonly userCode: string;
  readonly client: string;
  readonly scope: string | undefined;
  /** Address of the device. */
  readonly sourceIP: string;
  readonly username: string;
}

/**
 * Shows the device before the user decides, so that nobody is tricked into authorizing the device of somebody else (RFC
 * 8628 section 5.4).
 */
export function deviceConsentPage(exchange: PageExchange, consent: DeviceConsent): void {
  const { action, userCode, client, scope, sourceIP, username } = consent;
  const content = html`<p>
      You are logged in as <strong>${username}</strong>. The device at the address ${sourceIP}, which uses
      <strong>${client}</strong>, will be able to:
    </p>
    ${permissionList(scope)}
    <p>Allow this only if the device is yours, is in front of you and shows the code <strong>${userCode}</strong>.</p>
    ${decisionForm(exchange, action, 'user_code', userCode)}`;
  writePage(exchange.res, { title: 'Authorize this device?', content });
}
