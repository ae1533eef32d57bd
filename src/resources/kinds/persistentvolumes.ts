import { persistentvolumeclaims } from './persistentvolumeclaims.ts';

export const persistentvolumes = {
  ...persistentvolumeclaims,
  resource: 'persistentvolumes',
  statuses: ['pending', 'available', 'bound', 'released', 'failed'],
};
