/**
 * Determines what kube-apiserver allows a user to do. Sends a request as the user or, for resources of this server, a
 * SubjectAccessReview.
 */
import { kube } from '../kube.ts';
import { collectionPath, types, type Type } from './objects.ts';

export type Verb = 'get' | 'list' | 'watch';

export interface Caller {
  readonly username: string;
  readonly groups: readonly string[];
  readonly token: string;
}

/** Query of a watch. An allowed watch ends after a second, and only the head of its response is read. */
const watching = { watch: 'true', timeoutSeconds: 1, resourceVersion: '0' };

/** Caches decisions of kube-apiserver. Create a new instance after each change of a binding. */
export class Oracle {
  readonly #known = new Map<string, Promise<boolean>>();

  /**
   * Returns whether the caller is allowed to use the verb on an object. If `name` is '', the request is for the whole
   * collection.
   */
  allows(caller: Caller, verb: Verb, type: Type, namespace: string, name = ''): Promise<boolean> {
    const path = collectionPath(type, namespace);
    return this.#once([caller.username, verb, path, name], async () => {
      const isObject = verb === 'get';
      const fieldSelector = name === '' || isObject ? undefined : `metadata.name=${name}`;
      const { status, body } = await kube().stream(isObject ? `${path}/${name}` : path, {
        query: { fieldSelector, ...(verb === 'watch' ? watching : verb === 'list' ? { limit: 1 } : {}) },
        headers: {
          'impersonate-user': caller.username,
          'impersonate-group': [...caller.groups, 'system:authenticated'],
        },
      });
      body.destroy();
      if (status !== 200 && status !== 403) throw new Error(`kube-apiserver returned ${status} for ${path}/${name}`);
      return status === 200;
    });
  }

  /**
   * Returns whether the caller is allowed to see a Namespace. A list contains each Namespace that a Role in that
   * namespace allows the caller to get.
   */
  async allowsNamespace(caller: Caller, verb: Verb, name: string, isNamed: boolean): Promise<boolean> {
    const { namespaces } = types;
    const all = verb !== 'get' && (await this.allows(caller, verb, namespaces, '', isNamed ? name : ''));
    if (all || verb === 'watch')
      return all || this.reviews(caller, { verb, resource: 'namespaces', namespace: name, name });
    return this.allows(caller, 'get', namespaces, '', name);
  }

  reviews(caller: Caller, attributes: Readonly<Record<string, string>>): Promise<boolean> {
    return this.#once([caller.username, JSON.stringify(attributes)], async () => {
      const { status } = await kube().json<{ status: { allowed: boolean } }>(
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          method: 'POST',
          body: {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: {
              user: caller.username,
              groups: [...caller.groups, 'system:authenticated'],
              resourceAttributes: attributes,
            },
          },
        },
      );
      return status.allowed;
    });
  }

  #once(key: readonly string[], review: () => Promise<boolean>): Promise<boolean> {
    const id = key.join(' ');
    let allowed = this.#known.get(id);
    if (allowed === undefined) this.#known.set(id, (allowed = review()));
    return allowed;
  }
}
