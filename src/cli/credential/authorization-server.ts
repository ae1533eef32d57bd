/**
 * OAuth client for the platform. This client has only the functions that the plugin needs, because kubectl waits for
 * the plugin on every call.
 */
import { httpsURLExpected, isHTTPSURL } from '../../config/https-url.ts';
import { OutgoingClient, OutgoingError } from '../../runtime/outgoing.ts';
import type { TokenServerResponse } from './responses.ts';

/**
 * Maximum milliseconds from the first byte sent to the last byte read, so that a slow server cannot keep kubectl
 * waiting.
 */
const defaultTimeout = 30_000;
/** Maximum bytes of a response. Responses of the platform are far smaller. */
const maxResponseBytes = 1024 * 1024;

/** Error for an error response (RFC 6749 section 5.2), or for any other response with a status other than 200. */
export class OAuthRefusal extends Error {
  readonly error: string;

  constructor(error: string, description: string) {
    super(description);
    this.error = error;
  }
}

/** Content of a request, which has either a form or a bearer token. */
interface RequestParts {
  readonly token?: string;
  readonly body?: string;
}

/** Node.js error codes for certificates of an unknown CA. */
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
  readonly #timeout: number;

  /** `ca` is in PEM format. Default: the CAs of Node.js. Throws TypeError unless the URL is https. */
  constructor(url: string, ca: string | undefined, timeout = defaultTimeout) {
    this.#timeout = timeout;
    if (!isHTTPSURL(url)) throw new TypeError(`the server ${httpsURLExpected}`);
    this.#url = new URL(url);
    this.#client = new OutgoingClient({ ca });
  }

  /** Posts a form. Throws OAuthRefusal, or a network error. */
  post(path: string, form: FormFields): Promise<TokenServerResponse> {
    return this.#request(path, { body: new URLSearchParams(form).toString() });
  }

  /** Gets a path with a bearer token. Throws like `post`. */
  get(path: string, token: string): Promise<TokenServerResponse> {
    return this.#request(path, { token });
  }

  async #request(path: string, { token, body }: RequestParts): Promise<TokenServerResponse> {
    const headers = {
      Accept: 'application/json',
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }),
    };
    const method = body === undefined ? 'GET' : 'POST';
    const signal = AbortSignal.timeout(this.#timeout);
    const options = { method, headers, body, signal, maxBytes: maxResponseBytes };
    const response = await this.#client.request(new URL(path, this.#url), options).catch((error: unknown) => {
      if (signal.aborted) throw new Error(`no complete response within ${this.#timeout / 1_000} s`, { cause: error });
      if (isDistrust(error))
        throw new Error(`${error.message}; set --ca-file to the CA of ${this.#url.host}`, { cause: error });
      throw error;
    });
    const content = recordIn(response.body.toString('utf8'));
    if (response.status === 200) return content;
    const {
      error = `status ${response.status}`,
      error_description: description = `the server returned status ${response.status}`,
    } = content;
    throw new OAuthRefusal(String(error), String(description));
  }
}

/** Returns an empty record if the text is not a JSON object. */
function recordIn(text: string): TokenServerResponse {
  try {
    const content: unknown = JSON.parse(text);
    return typeof content === 'object' && content !== null ? (content as TokenServerResponse) : {};
  } catch {
    return {};
  }
}
