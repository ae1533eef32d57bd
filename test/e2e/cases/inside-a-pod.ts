import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { nodeName } from '../node/identities.ts';
import { adminPassword, authority, host, listNodes, logIn, nodesPath, pods, refresh } from '../release.ts';
import { step, type Case } from '../steps.ts';

export const insideAPod: Case = {
  title: 'A component in the cluster calls the server by its DNS name',
  steps: (cluster) => {
    const client = cluster.inside;
    let token = '';
    return [
      step(`a pod gets a token for admin at http://${host}/oauth/token`, async () => {
        const response = await logIn(client, `http://${host}`, await adminPassword(cluster));
        strictEqual(response.expires_in, 7200);
        token = response.access_token;
      }),
      step(`a pod lists the nodes at http://${host}${nodesPath}`, async () => {
        deepStrictEqual(await listNodes(client, `http://${host}`, token), [nodeName]);
      }),
      step('a pod gets 401 without a token, and invalid_grant with a wrong password', async () => {
        strictEqual((await client.request(`http://${host}${nodesPath}`)).status, 401);
        const form = { grant_type: 'password', username: 'admin', password: 'wrong' };
        const credentials = { client_id: 'platform', client_secret: 'platform' };
        const response = await client.request(`http://${host}/oauth/token`, { form: { ...form, ...credentials } });
        strictEqual(response.status, 400);
        strictEqual((JSON.parse(response.body) as { error: string }).error, 'invalid_grant');
      }),
      step(
        'a pod gets a token and lists the nodes over https with the CA of the ConfigMap platform-apiserver-ca',
        async () => {
          const verified = { authority: await authority(cluster) };
          const response = await logIn(client, `https://${host}`, await adminPassword(cluster), verified);
          deepStrictEqual(await listNodes(client, `https://${host}`, response.access_token, verified), [nodeName]);
        },
      ),
      step('a pod can use and refresh a token of one replica at the other immediately', async () => {
        const [first = '', second = ''] = (await pods(cluster)).map(({ status }) => `http://${status.podIP}:9090`);
        for (const [from, to] of [
          [first, second],
          [second, first],
        ] as const) {
          const one = await logIn(client, from, await adminPassword(cluster));
          deepStrictEqual(await listNodes(client, to, one.access_token), [nodeName]);
          const next = await refresh(client, to, one.refresh_token);
          deepStrictEqual(await listNodes(client, from, next.access_token), [nodeName]);
        }
      }),
    ];
  },
};
