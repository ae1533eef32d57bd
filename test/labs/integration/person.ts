/** A user who opens an address printed by an example, logs in as administrator and consents. */
import { Browser, formIn } from '../../fakes/browser.ts';
import { call, secureGateway } from './http.ts';
import { passwordOf } from './login.ts';
import { remember } from './secrets.ts';

/** Finds the address to open in the output. */
export const addressIn = (printed: string): string | undefined =>
  /https:[^\s"]+\/oauth\/(?:authorize|device)\?[^\s"]+(?=[\s"])/.exec(printed)?.[0];

/** Follows the pages to the last one, or to the redirect to a client, whose address is returned. */
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
  // Pages: login, user code of a device, and consent.
  for (let forms = 0; forms < 3 && formIn(page.text).action !== ''; forms += 1) page = await at.submit(page, filledIn);
  const { location } = page.headers;
  if (location === undefined) return '';
  remember(new URL(location).searchParams.get('code'));
  return location;
}

/**
 * Does the same, and then requests the address of the redirect, at which a client may listen. If none does, users copy
 * the address instead.
 */
export async function visit(address: string): Promise<string> {
  const location = await authorize(address);
  if (location !== '') await fetch(location).catch(() => undefined);
  return location;
}
