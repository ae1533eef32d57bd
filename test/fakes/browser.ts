/** Just enough of a browser for forms without scripts: it keeps cookies, follows redirects within the platform and fills forms in. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Ask } from './ask.ts';

/** What it looks at of an answer. */
export interface Page {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Form {
  readonly action: string;
  /** Of its inputs, the hidden ones too. */
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
  readonly #ask: (path: string, options: Ask) => Promise<P>;

  constructor(ask: (path: string, options: Ask) => Promise<P>) {
    this.#ask = ask;
  }

  /** Opens a path; the answer is that where the redirects within the platform end. */
  async open(path: string, options: Ask = {}): Promise<P> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(cookie === '' ? {} : { cookie }), ...options.headers };
    const answer = await this.#ask(path, { ...options, headers, secure: true });
    for (const line of answer.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (line.includes('Max-Age=0')) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const { location } = answer.headers;
    return location?.startsWith('/') ? await this.open(location) : answer;
  }

  /** Sends the form of a page, filled in. */
  submit(page: P, values: Readonly<Record<string, string>>): Promise<P> {
    const { action, fields } = formIn(page.text);
    return this.send(action, { ...fields, ...values });
  }

  send(path: string, fields: Readonly<Record<string, string>>, headers: Ask['headers'] = {}): Promise<P> {
    return this.open(path, {
      method: 'POST',
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin', ...headers },
    });
  }
}
