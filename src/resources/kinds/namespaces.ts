import type { Kind } from '../../cluster/catalogue/resource.ts';
import { phaseOf } from './phases.ts';

export const namespaces: Kind<string> = {
  group: '',
  resource: 'namespaces',
  fields: (object) => phaseOf(object, 'Active'),
  statuses: ['active', 'terminating'],
  statusOf: ({ fields }) => fields,
  filters: {},
};
