/**
 * OAuth parameters in a query or a form (RFC 6749 sections 3.1 and 3.2). One schema describes them, parses them and
 * defines their types. Unknown parameters are ignored. A parameter without a value counts as omitted. Repeated
 * parameters are rejected.
 */
import { errorMap } from '../config/error-map.ts';
import { descriptionsOf, shown, type QueryParameters, type Shape, type Values } from '../http/request/parameters.ts';
import { described, notEmpty, object, others, type Schema } from '../http/schema.ts';
import { OAuthError, type OAuthErrorCode } from '../runtime/errors.ts';
import { describeProblems } from '../runtime/problems.ts';

type Pairs = Iterable<readonly [name: string, value: string]>;

export interface OAuthParameters<P> extends QueryParameters<P> {
  /** Schema of a form with these parameters. */
  readonly schema: Schema;
  /** Throws OAuthError with all problems that have the same error code. */
  readonly parse: (given: Pairs) => P;
}

/** Error codes of unsupported values (RFC 6749 sections 4.1.2.1 and 5.2). Other parameters use invalid_request. */
const valueErrors: Readonly<Partial<Record<string, OAuthErrorCode>>> = {
  grant_type: 'unsupported_grant_type',
  response_type: 'unsupported_response_type',
};

/**
 * Defines parameters by their schemas. Each schema must have a description. `hints` explain why a missing parameter is
 * required.
 */
export function oauthParameters<const S extends Shape>(
  shape: S,
  hints: Readonly<Partial<Record<string, string>>> = {},
): OAuthParameters<Values<S>> {
  const names = Object.keys(shape);
  const known = object(Object.fromEntries(Object.entries(shape).map(([name, one]) => [name, notEmpty(one)])));
  return {
    descriptions: descriptionsOf(shape),
    schema: others(known),
    parse(pairs) {
      const given = readParameters(pairs);
      const { success, data, error } = known.safeParse(
        Object.fromEntries(names.filter((name) => given.has(name)).map((name) => [name, given.get(name)])),
        { error: errorMap },
      );
      if (success) return data as Values<S>;
      const problems = error.issues.map(({ path, message }) => problemOf(String(path[0]), message, given, hints));
      const [first] = problems;
      const same = problems.filter((problem) => problem.error === first?.error);
      throw new OAuthError(first?.error ?? 'invalid_request', same.map(({ description }) => description).join('; '));
    },
  };
}

function problemOf(
  name: string,
  message: string,
  given: ReadonlyMap<string, string>,
  hints: Readonly<Partial<Record<string, string>>>,
): { readonly error: OAuthErrorCode; readonly description: string } {
  if (!given.has(name)) {
    const hint = hints[name] === undefined ? '' : `: ${hints[name]}`;
    return { error: 'invalid_request', description: `the parameter "${name}" is missing${hint}` };
  }
  return { error: valueErrors[name] ?? 'invalid_request', description: `${name}: ${message}` };
}

export function readParameters(pairs: Pairs): ReadonlyMap<string, string> {
  const all = new Map<string, string>();
  const repeated = new Set<string>();
  for (const [name, value] of pairs) {
    if (all.has(name)) repeated.add(name);
    all.set(name, value);
  }
  if (repeated.size > 0)
    throw new OAuthError(
      'invalid_request',
      describeProblems([...repeated], (name) => `the parameter ${shown(name)} is repeated`),
    );
  for (const [name, value] of all) if (value === '') all.delete(name);
  return all;
}

/** Makes all parameters optional, to describe a form in which only some requests need them. */
export const optional = (shape: Shape): Shape =>
  Object.fromEntries(
    Object.entries(shape).map(([name, schema]) => [name, described(schema.description ?? '', schema.optional())]),
  );
