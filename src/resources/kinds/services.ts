import type { KubeObject } from '../../cluster/client/kube-object.ts';

/** Fields of core/v1 Service that are used here. */
interface Service extends KubeObject {
  readonly spec?: { readonly type?: string; readonly selector?: Readonly<Record<string, string>> };
}

/** Returns the pod selector of a Service; empty if it selects no pods. */
export function selectorOf(object: KubeObject): Readonly<Record<string, string>> {
  const { type, selector } = (object as Service).spec ?? {};
  // Kubernetes ignores the selector of an ExternalName Service.
  return type === 'ExternalName' ? {} : (selector ?? {});
}
