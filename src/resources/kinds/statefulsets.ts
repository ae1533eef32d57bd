import { replicasKind, scaled } from './replicas.ts';

export const statefulsets = replicasKind('statefulsets', scaled);
