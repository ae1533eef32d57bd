/** Sends requests to the token endpoint as clients do. */
import { lab } from './lab.ts';
import { call, gateway, type HttpResponse, type Call } from './http.ts';
import { passwords } from './people.ts';
import { remember } from './secrets.ts';

export interface Tokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly refresh_token: string;
  readonly expires_in: number;
  readonly scope?: string;
  readonly id_token?: string;
}

/** Error response of RFC 6749 section 5.2. */
export interface OAuthProblem {
  readonly error: string;
  readonly error_description: string;
}

/** Fields of a form. A form with a repeated field is a list of pairs. */
export type Form = Readonly<Record<string, string>> | readonly (readonly [string, string])[];

export const encode = (form: Form): string => {
  const pairs = Object.entries(form).length === 0 ? [] : Array.isArray(form) ? form : Object.entries(form);
  return new URLSearchParams(pairs as [string, string][]).toString();
};

export const platform = { client_id: 'platform', client_secret: 'platform' } as const;

/**
 * Posts a form to the token endpoint. Records the secrets of the form and of the response, which must not appear in any
 * log.
 */
export async function postForm(
  form: Form | string,
  options: Call & { readonly base?: string } = {},
): Promise<HttpResponse> {
  const { base = gateway(), headers = {}, ...rest } = options;
  const body = typeof form === 'string' ? form : encode(form);
  const response = await call(`${base}/oauth/token`, {
    method: 'POST',
    body,
    ...rest,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  });
  rememberResponse(response.text);
  for (const [name, value] of new URLSearchParams(body))
    if (['password', 'client_secret', 'refresh_token'].includes(name)) remember(value);
  return response;
}

/** Records the tokens in a response, if any. */
export function rememberResponse(text: string): void {
  try {
    const { access_token, refresh_token, id_token } = JSON.parse(text) as Partial<Tokens>;
    remember(access_token, refresh_token, id_token);
  } catch {
    // A response that is not JSON contains no tokens.
  }
}

/** Returns an Authorization header with Basic credentials (RFC 6749 section 2.3.1). */
export const basic = (id: string, secret: string): { readonly authorization: string } => {
  const credentials = Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64');
  if (secret !== id) remember(credentials);
  return { authorization: `Basic ${credentials}` };
};

export const passwordOf = (username: string): string =>
  username === 'admin' ? lab().adminPassword : passwords[username as keyof typeof passwords];

export const passwordForm = (username: string, password = passwordOf(username)): Record<string, string> => ({
  grant_type: 'password',
  username,
  password,
  ...platform,
});

export const refreshForm = (token: string): Record<string, string> => ({
  grant_type: 'refresh_token',
  refresh_token: token,
  ...platform,
});

/** Returns the tokens that the token endpoint issues for this form. Throws if the request fails. */
export async function tokens(form: Form, base = gateway()): Promise<Tokens> {
  const response = await postForm(form, { base });
  if (response.status !== 200) throw new Error(`${response.status} ${response.text}`);
  return response.json as Tokens;
}

export const login = (username: string, base?: string, password?: string): Promise<Tokens> =>
  tokens(passwordForm(username, password), base);

let kept: Promise<Tokens> | undefined;

/** Returns an access token of the administrator. Each test file uses one token. */
export async function adminToken(): Promise<string> {
  kept ??= login('admin');
  return (await kept).access_token;
}
