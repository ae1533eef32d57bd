import type { KubeObject } from '../../cluster/client/kube-object.ts';

interface Phased extends KubeObject {
  readonly status?: { readonly phase?: string };
}

/** status.phase in lower case, or what the cluster takes a new object to be in. */
export const phaseOf = (object: KubeObject, initial: string): string =>
  ((object as Phased).status?.phase ?? initial).toLowerCase();
