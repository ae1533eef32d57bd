/** The platform as an OAuth client meets it: no more than the plugin needs, since kubectl waits for it at every call. */
import https from 'node:https';
import { text } from 'node:stream/consumers';

const timeout = 30_000;

/** RFC 6749 section 5.2, or whatever else it said. */
export class Refusal extends Error {
  readonly error: string;

  constructor(error: string, description: string) {
    super(description);
    this.error = error;
  }
}

export type Form = Readonly<Record<string, string>>;

export class AuthorizationServer {
  readonly #url: URL;
  readonly #ca: string | undefined;

  /** `ca` in PEM; that of the system unless given. Throws TypeError for what is no https URL. */
  constructor(url: string, ca: string | undefined) {
    this.#url = new URL(url);
    if (this.#url.protocol !== 'https:') throw new TypeError(`the server must be an https URL, not ${url}`);
    this.#ca = ca;
  }

  /** Posts a form. Throws Refusal, or what the network says. */
  async post(path: string, form: Form): Promise<Readonly<Record<string, unknown>>> {
    const body = new URLSearchParams(form).toString();
    const { status, answer } = await this.#send(path, body);
    let said: Record<string, unknown> = {};
    try {
      if (answer !== '') said = JSON.parse(answer) as typeof said;
    } catch {
      // No server of ours.
    }
    if (status === 200) return said;
    const { error = `status ${status}`, error_description: description = `the server answered ${status}` } = said;
    throw new Refusal(String(error), String(description));
  }

  #send(path: string, body: string): Promise<{ readonly status: number; readonly answer: string }> {
    return new Promise((resolve, reject) => {
      const request = https.request(new URL(path, this.#url), {
        method: 'POST',
        timeout,
        ...(this.#ca === undefined ? {} : { ca: this.#ca }),
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          'Content-Length': Buffer.byteLength(body),
          Accept: 'application/json',
        },
      });
      request.once('timeout', () => request.destroy(new Error(`no answer within ${timeout / 1_000} s`)));
      request.once('error', reject);
      request.once('response', (response) => {
        text(response).then((answer) => resolve({ status: response.statusCode ?? 0, answer }), reject);
      });
      request.end(body);
    });
  }
}
