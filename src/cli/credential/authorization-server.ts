/** The platform as an OAuth client meets it: no more than the plugin needs, since kubectl waits for it at every call. */
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { httpsURLExpected, isHTTPSURL } from '../../config/https-url.ts';
import { readBody } from '../../runtime/read-body.ts';
import type { TokenServerResponse } from './answers.ts';

/** Milliseconds, from the first byte sent to the last one read: a server must not keep kubectl waiting by dripping. */
const longestRequest = 30_000;
/** Bytes. Nothing that the platform answers here is near that. */
const largestAnswer = 1024 * 1024;

/** RFC 6749 section 5.2, or whatever else it said. */
export class OAuthRefusal extends Error {
  readonly error: string;

  constructor(error: string, description: string) {
    super(description);
    this.error = error;
  }
}

/** What is sent: a form, or a token. */
interface What {
  readonly token?: string;
  readonly body?: string;
}

/** Node's words for a certificate that nobody vouches for who is known here. */
const distrusts = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
const isDistrust = (error: unknown): error is Error =>
  error instanceof Error && distrusts.has((error as NodeJS.ErrnoException).code ?? '');

export type FormFields = Readonly<Record<string, string>>;

export class AuthorizationServer {
  readonly #url: URL;
  readonly #ca: string | undefined;
  readonly #longest: number;

  /** `ca` in PEM; that of the system unless given. Throws TypeError for what is no https URL. */
  constructor(url: string, ca: string | undefined, longest = longestRequest) {
    this.#longest = longest;
    if (!isHTTPSURL(url)) throw new TypeError(`the server ${httpsURLExpected}`);
    this.#url = new URL(url);
    this.#ca = ca;
  }

  /** Posts a form. Throws Refusal, or what the network says. */
  post(path: string, form: FormFields): Promise<TokenServerResponse> {
    return this.#ask(path, { body: new URLSearchParams(form).toString() });
  }

  /** Reads what a token lets one read. Throws like `post`. */
  get(path: string, token: string): Promise<TokenServerResponse> {
    return this.#ask(path, { token });
  }

  async #ask(path: string, what: What): Promise<TokenServerResponse> {
    const { status, answer } = await this.#send(path, what);
    const said = recordIn(answer);
    if (status === 200) return said;
    const { error = `status ${status}`, error_description: description = `the server answered ${status}` } = said;
    throw new OAuthRefusal(String(error), String(description));
  }

  async #send(path: string, what: What): Promise<{ readonly status: number; readonly answer: string }> {
    const signal = AbortSignal.timeout(this.#longest);
    try {
      const response = await this.#request(path, what, signal);
      const tooLarge = (): Error => new Error(`the answer of ${this.#url.host} is too large`);
      const answer = (await readBody(response, largestAnswer, tooLarge)).toString('utf8');
      return { status: response.statusCode ?? 0, answer };
    } catch (error) {
      if (signal.aborted) throw new Error(`no whole answer within ${this.#longest / 1_000} s`, { cause: error });
      if (isDistrust(error))
        throw new Error(`${error.message}: the CA of ${this.#url.host} is to be given by --ca-file`, { cause: error });
      throw error;
    }
  }

  #request(path: string, { token, body }: What, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = https.request(new URL(path, this.#url), {
        method: body === undefined ? 'GET' : 'POST',
        signal,
        ...(this.#ca === undefined ? {} : { ca: this.#ca }),
        headers: {
          Accept: 'application/json',
          ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
          ...(body === undefined
            ? {}
            : { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': Buffer.byteLength(body) }),
        },
      });
      request.on('error', reject);
      request.once('response', resolve);
      request.end(body);
    });
  }
}

/** Of no server of ours, nothing. */
function recordIn(text: string): TokenServerResponse {
  try {
    const said: unknown = JSON.parse(text);
    return typeof said === 'object' && said !== null ? (said as TokenServerResponse) : {};
  } catch {
    return {};
  }
}
