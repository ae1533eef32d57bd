/** The resources that are served from a copy. A new one: a file here and a line in `definitions`. */
import { createCached, type CachedResource, type CacheOptions } from '../cached.ts';
import { nodes, type NodeFields } from './nodes.ts';

export const createNodes = (options: CacheOptions): CachedResource<NodeFields> => createCached(nodes, options);
