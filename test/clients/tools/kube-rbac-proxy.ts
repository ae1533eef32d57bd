/** A component with delegated authentication and authorization, which sends TokenReviews through the gateway. */
import { deepEqual } from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort } from '../../../hack/cluster/chosen.ts';
import { eventually } from '../../labs/integration/eventually.ts';
import { call } from '../../labs/integration/http.ts';
import { createServiceAccount, removeServiceAccount, serviceAccountToken } from '../../labs/integration/kube.ts';
import { login, passwordForm, tokens } from '../../labs/integration/login.ts';
import { startProgram } from '../../labs/integration/program.ts';
import { buildGoProgram } from '../go-program.ts';
import type { Flow, Tool } from '../tool.ts';

const account = 'behind-the-proxy';

const protect: Flow = async ({ path }, site) => {
  const upstream = createServer(({ headers }, res) =>
    res.end(`${String(headers['x-remote-user'])} in ${String(headers['x-remote-groups'])}`),
  ).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const port = await freePort(24_000);
  const proxy = startProgram(path, [
    `--insecure-listen-address=127.0.0.1:${port}`,
    `--upstream=http://127.0.0.1:${(upstream.address() as AddressInfo).port}/`,
    `--kubeconfig=${site.gateway}`,
    '--auth-header-fields-enabled',
  ]);
  /** Sends a request for a path that only the administrator is allowed to get. */
  const seenBy = async (token?: string): Promise<unknown> => {
    const { status, text } = await call(`http://127.0.0.1:${port}/metrics`, token === undefined ? {} : { token });
    return status === 200 ? text : status;
  };
  await createServiceAccount(account);
  try {
    await eventually('kube-rbac-proxy listens', () => seenBy());
    const { access_token: alice, id_token: identity } = await tokens({ ...passwordForm('alice'), scope: 'openid' });
    deepEqual(
      {
        nobody: await seenBy(),
        'a wrong token': await seenBy('wrong'),
        'an id_token': await seenBy(identity),
        admin: await seenBy((await login('admin')).access_token),
        alice: await seenBy(alice),
        'a ServiceAccount': await seenBy(await serviceAccountToken(account)),
      },
      {
        nobody: 401,
        'a wrong token': 401,
        'an id_token': 401,
        admin: 'admin in platform:admins|system:authenticated',
        alice: 403,
        'a ServiceAccount': 403,
      },
    );
  } finally {
    await removeServiceAccount(account);
    await proxy.end();
    upstream.close();
  }
};

export const kubeRBACProxy: Tool = {
  name: 'kube-rbac-proxy',
  build: () => buildGoProgram('kube-rbac-proxy'),
  flows: { 'authenticates and authorizes its callers': protect },
};
