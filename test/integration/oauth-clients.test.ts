/**
 * Unmodified OAuth clients in Go, Python and JavaScript: every flow, over TLS, at the issuer's address. Also covers the
 * tools of docs/guides/clients.md that need no build.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { registerClients } from '../clients/settings.ts';
import { grafana } from '../clients/tools/grafana.ts';
import { headlamp } from '../clients/tools/headlamp.ts';
import { configure } from '../labs/integration/configure.ts';
import {
  addLibraryClients,
  completedFlows,
  completeFlows,
  libraries,
  type Library,
} from '../labs/integration/oauth-libraries.ts';

let restore: () => Promise<void>;
beforeAll(async () => {
  restore = await configure((configuration) => {
    addLibraryClients(configuration);
    registerClients(configuration);
  });
});
afterAll(() => restore());

test.each(Object.keys(libraries) as Library[])('every OAuth flow succeeds with the library %s', async (library) => {
  expect(await completeFlows(library)).toEqual(completedFlows());
});

describe.each([headlamp, grafana])('$name', ({ flows }) => {
  test.each(Object.entries(flows))('the client program %s', async (_, flow) => {
    await expect(flow()).resolves.toBeUndefined();
  });
});
