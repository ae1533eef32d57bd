/** Reports of a rejected configuration in the log, in Events and in /readyz?verbose. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { logOfLines } from '../fakes/log.ts';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';

const namespace = '/api/v1/namespaces/platform-system';
const { log, lines } = logOfLines();

let lab: Lab;
beforeAll(async () => {
  lab = await startLab({ log });
});
afterAll(() => lab.stop());

const eventOf = (resourceVersion: string | undefined): Promise<string> =>
  new Promise((resolve) => {
    const end = lab.cluster.watch(`${namespace}/events`, undefined, '0', (_, event) => {
      if ((event['involvedObject'] as { resourceVersion?: string }).resourceVersion !== resourceVersion) return;
      setImmediate(() => end());
      resolve(JSON.stringify(event));
    });
  });

test.each([
  ['an alias without an anchor', 'secret: *hunter2', "data['platform.yaml'], line 1, column 9: is not valid YAML"],
  ['an invalid quoted string', 'a: 1\nsecret: "\\hunter2', 'line 2, column'],
  ['text after a value', "secret: 'x'hunter2", 'line 1, column 12: is not valid YAML'],
  ['an unknown kind', 'kind: hunter2', 'kind: must be '],
  ['an invalid duration', 'authentication: {accessTokenMaxAge: hunter2}', 'accessTokenMaxAge: must be a duration'],
])(
  'the error for a configuration with %s gives the position and does not quote the value',
  async (_, text, position) => {
    const token = String((await lab.token(login)).json()['access_token']);
    const before = lines().length;
    lab.cluster.put(`${namespace}/configmaps`, {
      metadata: { name: 'platform-config' },
      data: { 'platform.yaml': text },
    });
    const { resourceVersion } = lab.cluster.get(`${namespace}/configmaps`, 'platform-config')?.metadata ?? {};
    const event = await eventOf(resourceVersion);
    const { text: ready } = await lab.gateway('/readyz?verbose', { headers: { authorization: `Bearer ${token}` } });
    const logged = lines().slice(before).join('\n');
    for (const message of [event, ready, logged]) {
      expect(message).toContain(position);
      expect(message).not.toContain('hunter2');
    }
  },
);
