/** Forwards requests for the Kubernetes API to kube-apiserver as the caller, and returns its responses unchanged. */
import { authorizedByHandler } from '../http/access.ts';
import type { Gateway } from '../http/route.ts';
import { isHandshake } from '../http/listeners/web-socket.ts';
import type { Cluster } from '../cluster/client/client.ts';
import { forward } from './proxy.ts';
import { upgrade } from './upgrade.ts';

export const gateway = (client: Pick<Cluster, 'upstream' | 'identity'>): Gateway => ({
  access: authorizedByHandler,
  prefixes: new Set(['api', 'apis', 'openapi', 'version']),
  handler: (req, res, context) => (isHandshake(res) ? upgrade : forward)(client.upstream, req, res, context),
  ownIdentity: () => client.identity(),
});
