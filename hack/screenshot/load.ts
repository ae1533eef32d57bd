/** The load that the pictures of the dashboards show: users at work, and for a while somebody who guesses passwords. */
import { setTimeout as sleep } from 'node:timers/promises';
import { apisPath, call, gateway, nodesPath, open, secureGateway } from '../../test/labs/integration/http.ts';
import { kube } from '../../test/labs/integration/kube.ts';
import { login, passwordForm, postForm, refreshForm } from '../../test/labs/integration/login.ts';
import { sendTraffic } from '../../test/labs/monitoring/traffic.ts';

/** Duration of the load in seconds. */
export const duration = 180;

type Send = (signal: AbortSignal) => Promise<void>;

/** Users who log in, watch and list over TLS, and a controller that lists through kube-apiserver. */
const readLists: Send = async (signal) => {
  while (!signal.aborted) {
    const { access_token: token } = await login('admin');
    const watch = await open(`${secureGateway(1)}${nodesPath}?watch=true`, { token });
    watch.resume();
    for (let count = 0; count < 60 && !signal.aborted; count += 1) {
      await call(`${secureGateway(count % 2 === 0 ? 0 : 1)}${nodesPath}`, { token });
      (await kube().stream(`${apisPath}/nodes`)).body.resume();
      await sleep(100);
    }
    // kube-apiserver returns 503, because the Service has no endpoint at this port.
    await call(`${gateway()}/api/v1/namespaces/default/services/kubernetes:absent/proxy/`, { token });
    watch.destroy();
  }
};

/** Guesses of passwords, of a client's secret and of a token, and a stolen refresh token. */
const attack: Send = async (signal) => {
  const { refresh_token } = await login('bob');
  await postForm(refreshForm(refresh_token));
  for (let count = 0; !signal.aborted; count += 1) {
    await postForm(passwordForm('carol', `guess ${count}`));
    await postForm({ ...passwordForm('alice'), client_secret: `guess ${count}` });
    await call(`${gateway()}${nodesPath}`, { token: `guess ${count}` });
    await sleep(500);
  }
  await postForm(refreshForm(refresh_token));
};

const during = async (from: number, to: number, send: Send): Promise<void> => {
  await sleep(from * 1000);
  await send(AbortSignal.timeout((to - from) * 1000));
};

export async function sendLoad(): Promise<void> {
  await Promise.all([
    during(0, duration, sendTraffic),
    during(45, 135, sendTraffic),
    during(75, 120, sendTraffic),
    during(0, duration, readLists),
    during(60, 150, readLists),
    during(100, 135, attack),
  ]);
}
