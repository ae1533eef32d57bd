import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';
import { phaseOf } from './phases.ts';

/** Fields of core/v1 PersistentVolumeClaim that are used here. */
interface Claim extends KubeObject {
  readonly spec?: { readonly storageClassName?: string };
}

export const persistentvolumeclaims: Kind<{ readonly status: string; readonly storageClassName: string }> = {
  group: '',
  resource: 'persistentvolumeclaims',
  fields: (object) => ({
    status: phaseOf(object, 'Pending'),
    storageClassName: (object as Claim).spec?.storageClassName ?? '',
  }),
  statuses: ['pending', 'bound', 'lost'],
  statusOf: ({ fields: { status } }) => status,
  filters: {
    storageClassName: {
      description: 'spec.storageClassName',
      matches: ({ fields: { storageClassName } }, text) => storageClassName === text,
    },
  },
};
