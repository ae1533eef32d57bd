import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';

/** core/v1 Secret, as far as it is filtered by. */
interface Secret extends KubeObject {
  readonly type?: string;
}

export const secrets: Kind<string> = {
  group: '',
  resource: 'secrets',
  fields: (object) => (object as Secret).type ?? 'Opaque',
  statuses: [],
  statusOf: () => '',
  filters: { type: { description: 'its type', matches: ({ fields }, text) => fields === text } },
};
