/** Input and browser of the programs in this folder. NODE_EXTRA_CA_CERTS names the trusted CA. */
import { text } from 'node:stream/consumers';
import { Browser, type Page } from '../../fakes/browser.ts';

export interface Known {
  readonly username: string;
  readonly password: string;
  readonly callback: string;
  /** Secrets by client. */
  readonly clients: Readonly<Record<string, string>>;
}

export const readKnown = async (): Promise<Known> => JSON.parse(await text(process.stdin)) as Known;

/** Logs in and consents at an address, and returns the redirect to the client. */
export async function authorize({ origin, pathname, search }: URL, { username, password }: Known): Promise<URL> {
  const browser = new Browser<Page>(async (path, { method = 'GET', headers = {}, body }) => {
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
      redirect: 'manual',
      ...(body === undefined ? {} : { body: String(body) }),
    });
    const { status, headers: received } = response;
    return {
      status,
      headers: { ...Object.fromEntries(received), 'set-cookie': received.getSetCookie() },
      text: await response.text(),
    };
  });
  const consent = await browser.submit(await browser.open(`${pathname}${search}`), { username, password });
  const { headers } = await browser.submit(consent, { decision: 'allow' });
  return new URL(headers.location ?? '');
}
