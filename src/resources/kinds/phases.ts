import type { KubeObject } from '../../cluster/client/kube-object.ts';

interface Phased extends KubeObject {
  readonly status?: { readonly phase?: string };
}

/** Returns status.phase in lower case; `initial` is the phase of new objects without a phase. */
export const phaseOf = (object: KubeObject, initial: string): string =>
  ((object as Phased).status?.phase ?? initial).toLowerCase();
