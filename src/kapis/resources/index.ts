/**
 * The resources that have something of their own. Served on /apis too: `nodes`. The others are served on /kapis as all that the cluster
 * has; a new one: a file here and a line in `kinds`.
 */
import type { Kind } from '../resource.ts';

export { nodes } from './nodes.ts';

export const kinds: readonly Kind<unknown>[] = [];
