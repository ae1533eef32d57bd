/**
 * Serves `POST /oauth/authenticate`, the token webhook of kube-apiserver (k8s.io/apiserver
 * plugin/pkg/authenticator/token/webhook). Takes and returns a TokenReview of authentication.k8s.io/v1. Only tokens of
 * this server are authenticated, so reviews cannot loop. For any other token, and for a token that the caller is not
 * allowed to review, the response is 200 with `authenticated: false`. kube-apiserver logs `status.error`.
 */
import type { Request } from 'express';
import type { Client } from '../../accounts/directory/clients.ts';
import type { AccessTokens } from '../../auth/authenticators/access-tokens.ts';
import { bearerCredentials } from '../../auth/authenticators/bearer-credentials.ts';
import type { Authenticator } from '../../auth/authenticators/index.ts';
import { assertAllowed, type Authorizer } from '../../auth/authorizers/authorizer.ts';
import { OAuthError } from '../../runtime/errors.ts';
import { describeProblems } from '../../runtime/problems.ts';
import { errorMap } from '../../config/error-map.ts';
import { defineRoute } from '../../http/define-route.ts';
import { inQuery, json, type RequestContext } from '../../http/route.ts';
import { bodyProblems } from '../../http/request/parameters.ts';
import { parseJSON } from '../../http/request/parse-json.ts';
import { described, flag, list, named, object, oneOf, open, text, type TypeOf } from '../../http/schema.ts';
import { sendJSON, uncached, type OAuthEndpoint } from '../json-response.ts';
import { readBody } from '../../http/request/slow-body.ts';
import { authenticateClient, type ClientAuthentication } from '../client-authentication.ts';
import { canInspect, queryOfClients } from '../client-request.ts';

interface TokenReviewParts extends Pick<ClientAuthentication, 'directory' | 'limiter'> {
  readonly accessTokens: AccessTokens;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  /** Audiences of kube-apiserver; empty if they are unknown. */
  readonly audiences: () => Promise<readonly string[]>;
}

type Status = TypeOf<typeof statusSchema>;

const apiVersion = 'authentication.k8s.io/v1';
const kind = 'TokenReview';
const typed = { apiVersion: oneOf(apiVersion), kind: oneOf(kind) };
const tokenReviewSchema = named(
  'TokenReview',
  open(
    object({
      ...typed,
      spec: named(
        'TokenReviewSpec',
        open(
          object(
            { token: described('Token to authenticate', text.min(1)) },
            {
              audiences: described(
                'Accepted audiences: the audience of the token, or those of kube-apiserver',
                list(text),
              ),
            },
          ),
        ),
      ),
    }),
  ),
);
const reviewedUserSchema = named(
  'ReviewedUser',
  object({ username: text, uid: text, groups: described('Groups of the user, as used by RBAC', list(text)) }),
);
const statusSchema = named(
  'ReviewedTokenStatus',
  object(
    { authenticated: described('Whether the token is valid. If `false`, `error` is the only other property', flag) },
    {
      user: reviewedUserSchema,
      audiences: described('Accepted audiences that match', list(text)),
      error: described('Present if the client is allowed to review only its own tokens', text),
    },
  ),
);
const reviewedSchema = named('ReviewedToken', object({ ...typed, status: statusSchema }));

type Review = TypeOf<typeof tokenReviewSchema>;

const refused: Status = { authenticated: false };

/** A caller that is allowed to review tokens of some clients. */
interface Reviewer {
  readonly canReview: (clientID: string) => boolean;
  /**
   * Status for an invalid token and for a token of another client. The status is the same for both, so that it does not
   * reveal which tokens are valid.
   */
  readonly refusal: Status;
}

const reviewerOf = (client: Client): Reviewer => ({
  canReview: (clientID) => canInspect(client, clientID),
  refusal: client.introspection
    ? refused
    : {
        ...refused,
        error: `the token is invalid, or was not issued to the client "${client.name}"; only clients with introspection: true in their configuration can review the tokens of other clients`,
      },
});

export function tokenReviewEndpoint(parts: TokenReviewParts): OAuthEndpoint {
  const { directory, limiter, accessTokens, authenticator, authorizer, audiences } = parts;

  async function authenticate(req: Request, context: RequestContext): Promise<Reviewer> {
    if (/^basic /i.test(req.headers.authorization ?? '')) {
      const client = await authenticateClient(req, new Map(), context, { directory, limiter });
      if (client.isWellKnown)
        throw new OAuthError('invalid_client', `the secret of the client "${client.name}" is publicly known`);
      return reviewerOf(client);
    }
    const user = await authenticator(req, context.sourceIP);
    if (user === undefined)
      throw new OAuthError('invalid_client', 'authenticate as a client by HTTP Basic, or send a bearer token');
    await assertAllowed(authorizer, user, { verb: 'create', group: 'authentication.k8s.io', resource: 'tokenreviews' });
    return { canReview: () => true, refusal: refused };
  }

  /**
   * Returns whether the reviewed token is the credential of the request itself. kube-apiserver sends such a review if
   * it cannot authenticate its own credential. A TokenReview to authenticate the caller would then wait for this
   * response. The body is searched and not parsed, because the caller is not authenticated yet.
   */
  function reviewsOwnCredential({ headers }: Request, body: Buffer): boolean {
    const credential = bearerCredentials(headers.authorization) ?? '';
    return credential !== '' && !accessTokens.isOurs(credential) && body.includes(JSON.stringify(credential));
  }

  async function review(
    { spec: { token, audiences: accepted = [] } }: Review,
    { canReview, refusal }: Reviewer,
  ): Promise<Status> {
    const standing = await accessTokens.validateForCluster(token);
    if (standing === undefined || !canReview(standing.claims.clientID)) return refusal;
    const { claims, subject } = standing;
    const ofCluster = await audiences();
    const matching = accepted.filter((one) => one === claims.aud || ofCluster.includes(one));
    // A response without audiences means the audiences of kube-apiserver, so such a response is allowed only while the
    // audiences of kube-apiserver are unknown.
    if (accepted.length > 0 && matching.length === 0 && ofCluster.length > 0) return refused;
    return {
      authenticated: true,
      user: { username: subject.username, uid: subject.uid, groups: subject.groups },
      ...(matching.length === 0 ? {} : { audiences: matching }),
    };
  }

  return {
    routes: [
      defineRoute({
        method: 'post',
        path: '/oauth/authenticate',
        summary: 'Authenticate a token for kube-apiserver',
        description:
          'The token webhook of kube-apiserver: takes and returns a TokenReview of `authentication.k8s.io/v1`. The ' +
          'user of a bearer token requires the right to `create` `tokenreviews.authentication.k8s.io`. A client ' +
          'authenticates by HTTP Basic. Without `introspection: true` in its configuration, a client can review only ' +
          'its own tokens, and `status.error` reports this for all other tokens. The client `platform` is rejected. ' +
          'Tokens that this server did not issue are never authenticated.',
        access: { kind: 'client', schemes: ['client', 'bearer'] },
        // client-go sends the parameter `timeout`.
        query: queryOfClients([inQuery('timeout', 'Ignored; client-go sends this parameter')]),
        // The body is parsed only after the caller has authenticated.
        body: {
          description: { required: true, content: { 'application/json': tokenReviewSchema } },
          read: (request, { arrival }) => readBody(request, 'application/json', arrival),
        },
        responses: json(reviewedSchema, 'The review of the token'),
        errors: [403],
        async handler({ req, res, context, body }) {
          const status = reviewsOwnCredential(req, body)
            ? refused
            : await authenticate(req, context).then((reviewer) => review(parse(body), reviewer));
          sendJSON(res, { apiVersion, kind, status } satisfies TypeOf<typeof reviewedSchema>, uncached);
        },
      }),
    ],
    metadata: () => ({}),
  };
}

function parse(body: Buffer): Review {
  let value: unknown;
  try {
    value = parseJSON(body);
  } catch (error) {
    throw new OAuthError('invalid_request', `the body ${(error as SyntaxError).message}`);
  }
  const { success, data, error } = tokenReviewSchema.safeParse(value, { error: errorMap });
  if (success) return data;
  throw new OAuthError(
    'invalid_request',
    describeProblems(bodyProblems(error), ({ field, message }) => `${field}: ${message}`),
  );
}
