/** What a login comes back with (RFC 6749 section 4.1.2, RFC 9207), and what was kept of its beginning. */

export interface Begun {
  readonly state: string;
  readonly verifier: string;
  /** The operation that was shown. */
  readonly hash: string;
  readonly withCustomResources: boolean;
}

/** For people. */
export class LoginProblem extends Error {}

/** Is the server at `base`, which ends with a slash, at the address by which it calls itself, however that is written? */
export const isAt = (base: URL, issuer: string): boolean =>
  URL.canParse(`${issuer}/`) && new URL(`${issuer}/`).href === base.href;

/** What was kept, if it is that; it may be anybody's who runs here. */
export function begunOf(kept: string | null): Begun | undefined {
  if (kept === null) return undefined;
  try {
    const { state, verifier, hash, withCustomResources } = JSON.parse(kept) as Partial<Begun>;
    if (typeof state !== 'string' || typeof verifier !== 'string' || typeof hash !== 'string') return undefined;
    return { state, verifier, hash, withCustomResources: withCustomResources === true };
  } catch {
    return undefined;
  }
}

/** The code. Throws LoginProblem unless this is the answer of that server to the login that was begun here. */
export function codeIn(query: URLSearchParams, begun: Begun | undefined, issuer: string): string {
  const one = (name: string): string => {
    const values = query.getAll(name);
    if (values.length > 1) throw new LoginProblem(`This answer to a login says ${name} twice. Log in again.`);
    return values[0] ?? '';
  };
  if (begun === undefined) throw new LoginProblem('This login was not begun in this tab, or is over. Log in again.');
  if (one('state') !== begun.state)
    throw new LoginProblem('This is the answer to another login than the one begun in this tab. Log in again.');
  if (one('iss') !== issuer) throw new LoginProblem(`This answer is not of ${issuer}. Log in again.`);
  const error = one('error');
  const why = one('error_description');
  if (error !== '') throw new LoginProblem(`You are not logged in: ${why === '' ? error : `${why} (${error})`}.`);
  const code = one('code');
  if (code === '') throw new LoginProblem('This answer to a login has no code. Log in again.');
  return code;
}
