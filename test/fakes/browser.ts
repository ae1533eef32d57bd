/**
 * A minimal browser for forms without scripts: it keeps cookies, follows redirects within the platform and fills in
 * forms.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { AppRequest } from './request.ts';

/** The parts of a response that the browser uses. */
export interface Page {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Form {
  readonly action: string;
  /** Values of the inputs, including hidden ones. */
  readonly fields: Readonly<Record<string, string>>;
}

const unescapes: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
const unescaped = (text: string): string => text.replace(/&([a-z#\d]+);/g, (_, name: string) => unescapes[name] ?? '?');

const attributesOf = (tag: string): Record<string, string> =>
  Object.fromEntries(
    [...tag.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, unescaped(value)]),
  );

export function formIn(page: string): Form {
  const [form = '', open = ''] = /<form\s([^>]*)>.*?<\/form>/s.exec(page) ?? [];
  const inputs = [...form.matchAll(/<input\s([^>]*)>/g)].map(([, tag = '']) => attributesOf(tag));
  return {
    action: attributesOf(open)['action'] ?? '',
    fields: Object.fromEntries(inputs.map(({ name = '', value = '' }) => [name, value])),
  };
}

export class Browser<P extends Page = Page> {
  readonly cookies = new Map<string, string>();
  readonly #send: (path: string, options: AppRequest) => Promise<P>;

  constructor(send: (path: string, options: AppRequest) => Promise<P>) {
    this.#send = send;
  }

  /** Opens a path and follows redirects within the platform. Returns the last response. */
  async open(path: string, options: AppRequest = {}): Promise<P> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(cookie === '' ? {} : { cookie }), ...options.headers };
    const response = await this.#send(path, { ...options, headers, secure: true });
    for (const line of response.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (line.includes('Max-Age=0')) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const { location } = response.headers;
    return location?.startsWith('/') ? await this.open(location) : response;
  }

  /** Fills in and submits the form of a page. */
  submit(page: P, values: Readonly<Record<string, string>>): Promise<P> {
    const { action, fields } = formIn(page.text);
    return this.send(action, { ...fields, ...values });
  }

  send(path: string, fields: Readonly<Record<string, string>>, headers: AppRequest['headers'] = {}): Promise<P> {
    return this.open(path, {
      method: 'POST',
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin', ...headers },
    });
  }
}
