/** Somebody who opens an address that an example has printed, logs in as the administrator and lets in whoever asks. */
import { Browser, formIn } from '../../fakes/browser.ts';
import { call, secureGateway } from './http.ts';
import { passwordOf } from './login.ts';
import { remember } from './secrets.ts';

/** Where a browser is to be opened, in what has been printed. */
export const addressIn = (printed: string): string | undefined =>
  /https:[^\s"]+\/oauth\/(?:authorize|device)\?[^\s"]+(?=[\s"])/.exec(printed)?.[0];

/** Goes to the end, where the browser is shown a page or sent to the program that asked; then the answer is that address. */
export async function visit(address: string): Promise<string> {
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
  // The login, for a device its code, and consent.
  for (let forms = 0; forms < 3 && formIn(page.text).action !== ''; forms += 1) page = await at.submit(page, filledIn);
  const { location } = page.headers;
  if (location === undefined) return '';
  remember(new URL(location).searchParams.get('code'));
  // A program that listens there has what it wants; else people copy the address.
  await fetch(location).catch(() => undefined);
  return location;
}
