/** Simulates a user who opens an address that an example prints, logs in as administrator, and consents. */
import { Browser, formIn } from '../../fakes/browser.ts';
import { call, secureGateway } from './http.ts';
import { passwordOf } from './login.ts';
import { remember } from './secrets.ts';

/** Finds the address to open in the output. */
export const addressIn = (printed: string): string | undefined =>
  /https:[^\s"]+\/oauth\/(?:authorize|device)\?[^\s"]+(?=[\s"])/.exec(printed)?.[0];

/**
 * Submits the forms of all pages. Returns the address of the redirect to the client; '' if the last page is not a
 * redirect.
 */
export async function authorize(address: string): Promise<string> {
  const at = new Browser(async (path, { method = 'GET', headers = {}, body }) =>
    call(`${secureGateway()}${path}`, {
      method,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
      ...(body === undefined ? {} : { body }),
    }),
  );
  const { pathname, search } = new URL(address);
  const filledIn = { username: 'admin', password: passwordOf('admin'), decision: 'allow' };
  let page = await at.open(`${pathname}${search}`);
  // There are at most three forms: the login, the user code of a device, and the consent.
  for (let forms = 0; forms < 3 && formIn(page.text).action !== ''; forms += 1) page = await at.submit(page, filledIn);
  const { location } = page.headers;
  if (location === undefined) return '';
  remember(new URL(location).searchParams.get('code'));
  return location;
}

/**
 * Calls `authorize`, and then requests the address of the redirect, where a client may listen. If no client listens, a
 * user would copy the address instead.
 */
export async function visit(address: string): Promise<string> {
  const location = await authorize(address);
  if (location !== '') await fetch(location).catch(() => undefined);
  return location;
}
