/** Whatever is kube-apiserver's goes there as the caller, and comes back as it is. */
import { authorizedByHandler } from '../http/access.ts';
import type { Gateway } from '../http/route.ts';
import { isHandshake } from '../http/listeners/web-socket.ts';
import type { Upstream } from '../cluster/client/upstream.ts';
import { pass } from './proxy.ts';
import { upgrade } from './upgrade.ts';

export const gateway = (upstream: Upstream): Gateway => ({
  access: authorizedByHandler,
  prefixes: new Set(['api', 'apis', 'openapi', 'version']),
  handler: (req, res, context) => (isHandshake(res) ? upgrade : pass)(upstream, req, res, context),
});
