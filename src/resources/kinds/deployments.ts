import { replicasKind, scaled } from './replicas.ts';

export const deployments = replicasKind('deployments', scaled);
