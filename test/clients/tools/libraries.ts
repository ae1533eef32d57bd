/** OAuth libraries. `make test` runs the same programs. */
import { deepEqual } from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { completedFlows, completeFlows, type Library } from '../../labs/integration/oauth-libraries.ts';
import type { Tool } from '../tool.ts';

/** `version` matches the version of the library in `file`. */
const library = (name: string, of: Library, file: string, version: RegExp): Tool => ({
  name,
  build: async () => ({
    version: version.exec(await readFile(join(import.meta.dirname, '../../..', file), 'utf8'))?.[1] ?? '',
    path: '',
  }),
  flows: {
    'completes every OAuth flow': async () => deepEqual(await completeFlows(of), completedFlows()),
  },
});

const npm = (name: Library): Tool => library(name, name, 'package.json', new RegExp(`"${name}": "([^"]*)"`));

export const libraries: readonly Tool[] = [
  npm('openid-client'),
  npm('oauth4webapi'),
  library('authlib', 'Authlib', 'test/clients/python/requirements.txt', /^authlib==(\S+)/im),
  library('go-oidc', 'x/oauth2 and go-oidc', 'test/clients/go/go.mod', /go-oidc\/v3 (\S+)/),
];
