import { demand, type Authorizer } from '../../auth/authorizers/authorizer.ts';
import type { Filter } from '../exchange.ts';

/** Discovery is for everyone with an identity, as kube-apiserver's system:discovery has it. */
const isDiscovery = (path: string): boolean => path === '/' || /^\/(apis|kapis|openapi|version)(\/|$)/.test(path);

/**
 * The right to the URL itself: the resource of our own group on /apis, the non-resource path elsewhere. What a /kapis path reads is
 * another resource, and its handler demands the right to that one. What is passed on is judged by kube-apiserver. Nothing is written by a
 * path alone, so who may read it is told which methods it has; a refusal names the method, as kube-apiserver's does.
 */
export const authorization =
  (authorizer: Authorizer, isFree: (path: string) => boolean): Filter =>
  async ({ user, info, path, req, isProxied }) => {
    if (user === undefined || isProxied || isFree(path)) return;
    if (info.isResourceRequest) {
      if (info.prefix === 'kapis') return;
      const { verb, group, resource, subresource, namespace, name } = info;
      await demand(authorizer, user, { verb, group, resource, subresource, namespace, name });
    } else if (!isDiscovery(path)) {
      const verb = req.method.toLowerCase();
      if (verb !== 'head' && (await authorizer.authorize(user, { verb: 'get', path })).allowed) return;
      await demand(authorizer, user, { verb, path });
    }
  };
