/** The platform as an OAuth client meets it: no more than the plugin needs, since kubectl waits for it at every call. */
import { httpsURLExpected, isHTTPSURL } from '../../config/https-url.ts';
import { OutgoingClient, OutgoingError } from '../../runtime/outgoing.ts';
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
const isDistrust = (error: unknown): error is OutgoingError =>
  error instanceof OutgoingError && distrusts.has(error.code ?? '');

export type FormFields = Readonly<Record<string, string>>;

export class AuthorizationServer {
  readonly #url: URL;
  readonly #client: OutgoingClient;
  readonly #longest: number;

  /** `ca` in PEM; that of the system unless given. Throws TypeError for what is no https URL. */
  constructor(url: string, ca: string | undefined, longest = longestRequest) {
    this.#longest = longest;
    if (!isHTTPSURL(url)) throw new TypeError(`the server ${httpsURLExpected}`);
    this.#url = new URL(url);
    this.#client = new OutgoingClient({ ca });
  }

  /** Posts a form. Throws Refusal, or what the network says. */
  post(path: string, form: FormFields): Promise<TokenServerResponse> {
    return this.#ask(path, { body: new URLSearchParams(form).toString() });
  }

  /** Reads what a token lets one read. Throws like `post`. */
  get(path: string, token: string): Promise<TokenServerResponse> {
    return this.#ask(path, { token });
  }

  async #ask(path: string, { token, body }: What): Promise<TokenServerResponse> {
    const headers = {
      Accept: 'application/json',
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }),
    };
    const method = body === undefined ? 'GET' : 'POST';
    const signal = AbortSignal.timeout(this.#longest);
    const options = { method, headers, body, signal, maxBytes: largestAnswer };
    const answer = await this.#client.request(new URL(path, this.#url), options).catch((error: unknown) => {
      if (signal.aborted) throw new Error(`no whole answer within ${this.#longest / 1_000} s`, { cause: error });
      if (isDistrust(error))
        throw new Error(`${error.message}: the CA of ${this.#url.host} is to be given by --ca-file`, { cause: error });
      throw error;
    });
    const said = recordIn(answer.body.toString('utf8'));
    if (answer.status === 200) return said;
    const {
      error = `status ${answer.status}`,
      error_description: description = `the server answered ${answer.status}`,
    } = said;
    throw new OAuthRefusal(String(error), String(description));
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
