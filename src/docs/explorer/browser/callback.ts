/**
 * Validates the response to an authorization request (RFC 6749 section 4.1.2, RFC 9207) against the stored pending
 * login.
 */

export interface PendingLogin {
  readonly state: string;
  readonly verifier: string;
  /** Fragment with the ID of the operation that was shown. */
  readonly hash: string;
  readonly withCustomResources: boolean;
}

/** Error whose message is shown on the page. */
export class LoginProblem extends Error {}

/** Returns whether `base`, which ends with a slash, is the issuer. */
export const isAt = (base: URL, issuer: string): boolean =>
  URL.canParse(`${issuer}/`) && new URL(`${issuer}/`).href === base.href;

/** Parses the stored pending login. The value is not trusted, because any script of this origin may have written it. */
export function parsePendingLogin(stored: string | null): PendingLogin | undefined {
  if (stored === null) return undefined;
  try {
    const { state, verifier, hash, withCustomResources } = JSON.parse(stored) as Partial<PendingLogin>;
    if (typeof state !== 'string' || typeof verifier !== 'string' || typeof hash !== 'string') return undefined;
    return { state, verifier, hash, withCustomResources: withCustomResources === true };
  } catch {
    return undefined;
  }
}

/** Returns the code. Throws LoginProblem unless this is the response of `issuer` to `pending`. */
export function authorizationCode(query: URLSearchParams, pending: PendingLogin | undefined, issuer: string): string {
  const one = (name: string): string => {
    const values = query.getAll(name);
    if (values.length > 1) throw new LoginProblem(`The login response repeats ${name}. Log in again.`);
    return values[0] ?? '';
  };
  if (pending === undefined)
    throw new LoginProblem('This login was not started in this tab, or is already complete. Log in again.');
  if (one('state') !== pending.state) throw new LoginProblem('This is the response to another login. Log in again.');
  if (one('iss') !== issuer) throw new LoginProblem(`This login response is not from ${issuer}. Log in again.`);
  const error = one('error');
  const description = one('error_description');
  if (error !== '')
    throw new LoginProblem(`Login failed: ${description === '' ? error : `${description} (${error})`}.`);
  const code = one('code');
  if (code === '') throw new LoginProblem('The login response has no code. Log in again.');
  return code;
}
