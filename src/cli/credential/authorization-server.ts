/** The platform as an OAuth client meets it: no more than the plugin needs, since kubectl waits for it at every call. */
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { readBody } from '../../kube/read-body.ts';
import type { Answer } from './answers.ts';

/** Milliseconds, from the first byte sent to the last one read: a server must not keep kubectl waiting by dripping. */
const longestRequest = 30_000;
/** Bytes. Nothing that the platform answers here is near that. */
const largestAnswer = 1024 * 1024;

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
  readonly #longest: number;

  /** `ca` in PEM; that of the system unless given. Throws TypeError for what is no https URL. */
  constructor(url: string, ca: string | undefined, longest = longestRequest) {
    this.#longest = longest;
    this.#url = new URL(url);
    if (this.#url.protocol !== 'https:') throw new TypeError(`the server must be an https URL, not ${url}`);
    this.#ca = ca;
  }

  /** Posts a form. Throws Refusal, or what the network says. */
  async post(path: string, form: Form): Promise<Answer> {
    const { status, answer } = await this.#send(path, new URLSearchParams(form).toString());
    const said = recordIn(answer);
    if (status === 200) return said;
    const { error = `status ${status}`, error_description: description = `the server answered ${status}` } = said;
    throw new Refusal(String(error), String(description));
  }

  async #send(path: string, body: string): Promise<{ readonly status: number; readonly answer: string }> {
    const signal = AbortSignal.timeout(this.#longest);
    try {
      const response = await this.#request(path, body, signal);
      const tooLarge = (): Error => new Error(`the answer of ${this.#url.host} is too large`);
      const answer = (await readBody(response, largestAnswer, tooLarge)).toString('utf8');
      return { status: response.statusCode ?? 0, answer };
    } catch (error) {
      throw signal.aborted ? new Error(`no whole answer within ${this.#longest / 1_000} s`) : error;
    }
  }

  #request(path: string, body: string, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = https.request(new URL(path, this.#url), {
        method: 'POST',
        signal,
        ...(this.#ca === undefined ? {} : { ca: this.#ca }),
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          'Content-Length': Buffer.byteLength(body),
          Accept: 'application/json',
        },
      });
      request.on('error', reject);
      request.once('response', resolve);
      request.end(body);
    });
  }
}

/** Of no server of ours, nothing. */
function recordIn(text: string): Answer {
  try {
    const said: unknown = JSON.parse(text);
    return typeof said === 'object' && said !== null ? (said as Answer) : {};
  } catch {
    return {};
  }
}
