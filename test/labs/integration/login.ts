/** The token endpoint, as clients use it. */
import { lab } from './lab.ts';
import { call, gateway, type Answer, type Call } from './http.ts';
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

/** RFC 6749 section 5.2. */
export interface OAuthProblem {
  readonly error: string;
  readonly error_description: string;
}

/** Pairs, where one is to be repeated. */
export type Form = Readonly<Record<string, string>> | readonly (readonly [string, string])[];

export const encode = (form: Form): string => {
  const pairs = Object.entries(form).length === 0 ? [] : Array.isArray(form) ? form : Object.entries(form);
  return new URLSearchParams(pairs as [string, string][]).toString();
};

export const platform = { client_id: 'platform', client_secret: 'platform' } as const;

/** Sends a form to the token endpoint; what it holds and what comes back may stand in no log. */
export async function postForm(form: Form | string, options: Call & { readonly base?: string } = {}): Promise<Answer> {
  const { base = gateway(), headers = {}, ...rest } = options;
  const body = typeof form === 'string' ? form : encode(form);
  const answer = await call(`${base}/oauth/token`, {
    method: 'POST',
    body,
    ...rest,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  });
  rememberAnswer(answer.text);
  for (const [name, value] of new URLSearchParams(body))
    if (['password', 'client_secret', 'refresh_token'].includes(name)) remember(value);
  return answer;
}

/** The tokens in an answer, if there are any. */
export function rememberAnswer(text: string): void {
  try {
    const { access_token, refresh_token, id_token } = JSON.parse(text) as Partial<Tokens>;
    remember(access_token, refresh_token, id_token);
  } catch {
    // No JSON, no tokens.
  }
}

/** RFC 6749 section 2.3.1. */
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

/** Throws unless tokens are given. */
export async function tokens(form: Form, base = gateway()): Promise<Tokens> {
  const answer = await postForm(form, { base });
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
  return answer.json as Tokens;
}

export const login = (username: string, base?: string, password?: string): Promise<Tokens> =>
  tokens(passwordForm(username, password), base);

let kept: Promise<Tokens> | undefined;

/** An administrator's token, one for each test file. */
export async function adminToken(): Promise<string> {
  kept ??= login('admin');
  return (await kept).access_token;
}
