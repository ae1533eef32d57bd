/**
 * Responds to TokenReviews of access tokens of this server, so that components with delegated authentication work at
 * the gateway. kube-apiserver cannot validate these tokens. All other reviews are forwarded.
 */
import type { Request, Response } from 'express';
import type { AccessTokens } from '../auth/authenticators/access-tokens.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { withAuthenticated } from '../auth/user.ts';
import { chunksOf } from '../http/request/body-chunks.ts';
import { negotiate } from '../http/request/negotiate.ts';
import { parseJSON } from '../http/request/parse-json.ts';
import { recordOf } from '../http/request/json-body.ts';
import { writeJson } from '../http/response/write.ts';
import type { RequestContext, RequestInfo } from '../http/route.ts';
import { tooLarge } from '../runtime/errors.ts';
import { readBody } from '../runtime/promises.ts';
import { field, fields, unknownObject } from '../runtime/protobuf.ts';

export interface TokenReviewParts {
  readonly accessTokens: Pick<AccessTokens, 'validate'>;
  readonly authorizer: Authorizer;
  readonly issuer: () => string;
}

/** Request of a TokenReview: a token, and the audiences that the caller accepts. */
interface Spec {
  readonly token: string;
  readonly audiences: readonly string[];
}

const apiVersion = 'authentication.k8s.io/v1';
const kind = 'TokenReview';
/** Maximum bytes of a body that is read. Tokens of this server have at most 16 KiB. */
const maxSize = 64 * 1024;

/** Returns whether the request creates a TokenReview. */
export const isTokenReview = ({ verb, group, version, resource, subresource, namespace, name }: RequestInfo): boolean =>
  verb === 'create' &&
  `${group}/${version}` === apiVersion &&
  resource === 'tokenreviews' &&
  [subresource, namespace, name].every((part) => part === '');

/**
 * Responds to a TokenReview, or calls `forward`. If the body was already read, `forward` gets the body. A caller
 * without the right to create TokenReviews gets kube-apiserver's 403, and the body is not read.
 */
export async function handleTokenReview(
  parts: TokenReviewParts,
  req: Request,
  res: Response,
  context: RequestContext,
  forward: (body?: Buffer) => Promise<void>,
): Promise<void> {
  if (!(await shouldRead(parts, req, context))) return forward();
  const body = await readBody(chunksOf(req), maxSize, () =>
    tooLarge(`a TokenReview must not be larger than ${maxSize} bytes`),
  );
  const spec = specOf(req.headers['content-type'], body);
  const status = spec && (await statusOf(spec, parts));
  if (status === undefined) return forward(body);
  negotiate(req.headers.accept, ['application/json'], () => true);
  await writeJson(req, res, { kind, apiVersion, metadata: {}, spec, status }, { status: 201 });
}

/** Returns whether the caller is allowed to create TokenReviews, and the body is neither large nor compressed. */
async function shouldRead(
  { authorizer }: TokenReviewParts,
  { headers }: Request,
  { user, impersonated = user, info: { verb, group, resource } }: RequestContext,
): Promise<boolean> {
  const isSmall = Number(headers['content-length'] ?? 0) <= maxSize && headers['content-encoding'] === undefined;
  if (!isSmall || impersonated === undefined) return false;
  return (await authorizer.authorize(impersonated, { verb, group, resource })).allowed;
}

/**
 * Returns the spec of a TokenReview in JSON or protobuf; undefined for anything else, which kube-apiserver validates.
 */
function specOf(contentType = 'application/json', body: Buffer): Spec | undefined {
  try {
    if (/^application\/json\s*(;|$)/i.test(contentType)) return ofJSON(parseJSON(body));
    return /^application\/vnd\.kubernetes\.protobuf\s*(;|$)/i.test(contentType) ? ofProtobuf(body) : undefined;
  } catch {
    return undefined;
  }
}

function ofJSON(value: unknown): Spec | undefined {
  const review = recordOf(value);
  const { token, audiences: given } = recordOf(review?.['spec']) ?? {};
  // Kubernetes treats null like a missing value.
  const audiences = given ?? [];
  const isReview = review?.['apiVersion'] === apiVersion && review['kind'] === kind;
  const areTexts = Array.isArray(audiences) && audiences.every((one) => typeof one === 'string');
  return isReview && typeof token === 'string' && areTexts ? { token, audiences } : undefined;
}

/**
 * Reads the fields of k8s.io/api authentication/v1 generated.proto: TokenReview.spec (2), TokenReviewSpec.token (1) and
 * audiences (2).
 */
function ofProtobuf(body: Buffer): Spec | undefined {
  const object = unknownObject(body);
  if (object?.apiVersion !== apiVersion || object.kind !== kind) return undefined;
  const spec = field(object.raw, 2);
  return {
    token: field(spec, 1).toString('utf8'),
    audiences: fields(spec, 2).map((audience) => audience.toString('utf8')),
  };
}

/**
 * Returns the status for a valid access token of this server and an accepted audience. Returns undefined for any other
 * token or audience.
 */
async function statusOf({ token, audiences }: Spec, { accessTokens, issuer }: TokenReviewParts) {
  if (audiences.length > 0 && !audiences.includes(issuer())) return undefined;
  const valid = await accessTokens.validate(token);
  if (valid === undefined) return undefined;
  const { username, uid, groups } = valid.subject;
  const user = withAuthenticated({ username, uid, groups, via: 'token' });
  return { authenticated: true, user: { username, uid, groups: user.groups }, audiences: [issuer()] };
}
