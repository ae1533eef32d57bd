import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';

/** Fields of core/v1 Secret that are used here. */
interface Secret extends KubeObject {
  readonly type?: string;
}

export const secrets: Kind<string> = {
  group: '',
  resource: 'secrets',
  fields: (object) => (object as Secret).type ?? 'Opaque',
  statuses: [],
  statusOf: () => '',
  filters: { type: { description: 'type of the Secret', matches: ({ fields }, text) => fields === text } },
};
