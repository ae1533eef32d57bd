/**
 * Resources with their own filters or statuses. To add one, create a file here and add it to `kinds`. `nodes` is also
 * served at /apis. The other kinds are served only at /kapis, like all resources of the cluster.
 */
import type { Kind } from '../../cluster/catalogue/resource.ts';
import { daemonsets } from './daemonsets.ts';
import { deployments } from './deployments.ts';
import { jobs } from './jobs.ts';
import { namespaces } from './namespaces.ts';
import { persistentvolumeclaims } from './persistentvolumeclaims.ts';
import { persistentvolumes } from './persistentvolumes.ts';
import { pods } from './pods.ts';
import { secrets } from './secrets.ts';
import { statefulsets } from './statefulsets.ts';
import { volumesnapshots } from './volumesnapshots.ts';

export { nodes } from './nodes.ts';

export const kinds: readonly Kind<unknown>[] = [
  daemonsets,
  deployments,
  jobs,
  namespaces,
  persistentvolumeclaims,
  persistentvolumes,
  pods,
  secrets,
  statefulsets,
  volumesnapshots,
];
