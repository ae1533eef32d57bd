/**
 * Authentication by the front proxy and by tokens. New tokens pass passport, with one strategy for each place of a
 * token. A strategy that finds no token fails, and passport tries the next strategy. The first token found decides.
 */
import type { Request } from 'express';
import passport, { type AuthenticateOptions, type Strategy, type StrategyCreatedStatic } from 'passport';
import { Strategy as BearerStrategy, type VerifyFunctionWithRequest } from 'passport-http-bearer';
import { invalidToken, malformedCredentials } from '../../runtime/errors.ts';
import { fingerprint } from '../../tokens/jwt.ts';
import type { UserInfo } from '../user.ts';
import type { Authenticator, Source, TokenAuthenticator } from './authenticator.ts';
import { malformedToken, onlyBearerCredentials } from './bearer-credentials.ts';
import { subprotocolToken } from './web-socket-request.ts';

interface Options extends AuthenticateOptions {
  readonly source: Source;
}

/**
 * Authenticates by a bearer token (RFC 6750). `find` returns the text at the position of the token, valid or not;
 * undefined if there is none.
 */
class TokenStrategy extends BearerStrategy<VerifyFunctionWithRequest> {
  declare fail: StrategyCreatedStatic['fail'];
  declare readonly error: StrategyCreatedStatic['error'];
  readonly find: (request: Request) => string | undefined;

  constructor(name: string, find: (request: Request) => string | undefined, verify: VerifyFunctionWithRequest) {
    super({ passReqToCallback: true }, verify);
    this.name = name;
    this.find = find;
  }

  override authenticate(request: Request, { source }: Options): void {
    const token = this.find(request);
    if (token === undefined) return this.fail();
    // passport creates an instance for each request. A malformed or invalid token is refused, even if the request has
    // other credentials.
    this.fail = () => {
      const problem = malformedToken(token);
      this.error(problem === undefined ? invalidToken() : malformedCredentials(problem));
    };
    // RFC 9110 section 11.4 allows several spaces after the scheme, but the base class accepts only one. The base class
    // does not see tokens in the body or the query.
    super.authenticate({ headers: { authorization: `Bearer ${token}` }, source } as unknown as Request);
  }
}

/** Authenticates by a bearer token. Known tokens bypass passport (ADR 6). */
export function gatewayAuthenticator(tokens: readonly TokenAuthenticator[]): Authenticator {
  const authenticate = authenticateBy(tokenStrategies(tokens));
  return (request, source) => {
    const token = onlyBearerCredentials(request) ?? subprotocolToken(request);
    const user = token === undefined ? undefined : knownUser(token, tokens);
    return user ?? authenticate(request, source);
  };
}

/**
 * Authenticates by the headers of kube-apiserver's aggregator, the front proxy (request-header.ts), or else by a token.
 */
export function aggregatedAuthenticator(
  proxy: (request: Request) => UserInfo | undefined,
  tokens: readonly TokenAuthenticator[],
): Authenticator {
  const authenticate = gatewayAuthenticator(tokens);
  return (request, source) => proxy(request) ?? authenticate(request, source);
}

/** Returns strategies for a token in the Authorization header and for a token among the subprotocols of a WebSocket. */
function tokenStrategies(authenticators: readonly TokenAuthenticator[]): Strategy[] {
  const verify: VerifyFunctionWithRequest = (request, token, done) => {
    const { source } = request as unknown as Options;
    verifyNew(token, source, authenticators).then((found) => done(null, found ?? false), done);
  };
  return [
    new TokenStrategy('bearer', onlyBearerCredentials, verify),
    new TokenStrategy('web-socket', subprotocolToken, verify),
  ];
}

function knownUser(token: string, authenticators: readonly TokenAuthenticator[]): UserInfo | undefined {
  const key = fingerprint(token);
  for (const { known } of authenticators) {
    const user = known?.(key);
    if (user !== undefined) return user;
  }
  return undefined;
}

/** Returns the user of the first authenticator that recognizes the token. */
async function verifyNew(
  token: string,
  source: Source,
  authenticators: readonly TokenAuthenticator[],
): Promise<UserInfo | undefined> {
  for (const authenticate of authenticators) {
    const user = await authenticate(token, source);
    if (user !== undefined) return user;
  }
  return undefined;
}

/**
 * Creates an authenticator that returns undefined, without a promise, for a request without a token, so that the
 * request does not wait. With a callback, passport does not write the response.
 */
function authenticateBy(strategies: readonly Strategy[]): Authenticator {
  const authenticator = new passport.Passport();
  for (const strategy of strategies) authenticator.use(strategy);
  const names = strategies.map(({ name = '' }) => name);
  return (request, source) => {
    const settled: { user?: UserInfo | undefined } = {};
    const { promise, resolve, reject } = Promise.withResolvers<UserInfo | undefined>();
    const options: Options = { session: false, source };
    const authenticate = authenticator.authenticate(
      names,
      options,
      (error: unknown, user?: UserInfo | false | null) => {
        if (error) return reject(error);
        settled.user = user || undefined;
        resolve(settled.user);
      },
    ) as (request: Request) => void;
    authenticate(request);
    return 'user' in settled ? settled.user : promise;
  };
}
