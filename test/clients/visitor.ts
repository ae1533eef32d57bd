/**
 * Simulates a browser that uses a web tool on this machine: it keeps the cookies of the tool, and logs in at the
 * platform as admin.
 */
import { authorize } from '../labs/integration/person.ts';

export class Visitor {
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Requests a path or address of the tool, and does not follow redirects. */
  async open(address: string): Promise<Response> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(new URL(address, this.#origin), { headers: { cookie }, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      this.#cookies.set(name, value);
    }
    return response;
  }

  /** Opens the path that starts a login. Returns the tool's response to the redirect back. */
  async logIn(path: string): Promise<Response> {
    const { headers } = await this.open(path);
    return this.open(await authorize(headers.get('location') ?? ''));
  }
}
