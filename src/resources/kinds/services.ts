import type { KubeObject } from '../../cluster/client/kube-object.ts';

/** core/v1 Service, as far as it selects pods. */
interface Service extends KubeObject {
  readonly spec?: { readonly type?: string; readonly selector?: Readonly<Record<string, string>> };
}

/** The labels of the pods that a Service leads to; none: it selects nothing. */
export function selectorOf(object: KubeObject): Readonly<Record<string, string>> {
  const { type, selector } = (object as Service).spec ?? {};
  // Kubernetes does not heed it there.
  return type === 'ExternalName' ? {} : (selector ?? {});
}
