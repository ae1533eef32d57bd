import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startLab, type Lab } from '../labs/conformance/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab({ httpPort: 'off' });
});
afterAll(() => lab.stop());

test('a server with --http-port=off listens only on ports with TLS', async () => {
  expect(lab.ports).toEqual({ http: 0, https: expect.any(Number), aggregated: expect.any(Number) });
  for (const get of [lab.secureGateway, lab.aggregated]) expect((await get('/livez')).status).toBe(200);
});
