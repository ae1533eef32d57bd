import { homedir } from 'node:os';
import { join } from 'node:path';

/** Folder in the user's cache for files that are downloaded or built once per machine. */
export const userCache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'platform-apiserver');
