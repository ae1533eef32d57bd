import type { KubeObject } from '../../kube/kube-object.ts';
import type { Kind } from '../resource.ts';

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
