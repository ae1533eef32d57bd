/** Forwards requests for the Kubernetes API to kube-apiserver as the caller, and returns its responses unchanged. */
import { authorizedByHandler } from '../http/access.ts';
import type { Gateway } from '../http/route.ts';
import { isHandshake } from '../http/listeners/web-socket.ts';
import type { Cluster } from '../cluster/client/client.ts';
import { forward } from './proxy.ts';
import { handleTokenReview, isTokenReview, type TokenReviewParts } from './token-review.ts';
import { upgrade } from './upgrade.ts';

interface GatewayParts extends TokenReviewParts {
  readonly client: Pick<Cluster, 'upstream' | 'identity'>;
}

export const gateway = ({ client, ...reviewing }: GatewayParts): Gateway => ({
  access: authorizedByHandler,
  prefixes: new Set(['api', 'apis', 'openapi', 'version']),
  handler(req, res, context) {
    if (isHandshake(res)) return upgrade(client.upstream, req, res, context);
    const forwarded = (body?: Buffer): Promise<void> => forward(client.upstream, req, res, context, body);
    return isTokenReview(context.info) ? handleTokenReview(reviewing, req, res, context, forwarded) : forwarded();
  },
  ownIdentity: () => client.identity(),
});
