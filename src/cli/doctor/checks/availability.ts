/** Checks whether kube-apiserver serves the aggregated API, according to its own probe and to a request. */
import { apiServices } from '../../../config/names.ts';
import { failed, notChecked, ok, Stop, warning, type Check, type Finding } from '../check.ts';
import { clockSkew, describeSkew } from '../clock.ts';
import type { Context } from '../context.ts';
import { connection } from './network.ts';
import { frontProxy } from './kube-apiserver.ts';
import { certificate, registrations } from './trust.ts';

export const availability: Check = {
  name: 'aggregated API',
  needs: [frontProxy.name, certificate.name, registrations.name, connection.name],
  async *run(context) {
    for (const name of apiServices) {
      const finding = await conditionOf(name, context);
      yield finding;
      if (finding.status === 'ok') yield* discovery(name, context);
    }
  },
};

async function conditionOf(name: string, context: Context): Promise<Finding> {
  const where = `APIService ${name}`;
  const { conditions = [] } = (await context.apiService(name))?.status ?? {};
  const available = conditions.find(({ type }) => type === 'Available');
  if (available?.status === 'True') return ok(`${where} is available`);
  const { reason = 'Unknown', message = 'kube-apiserver has not reported a condition yet' } = available ?? {};
  return failed(
    `${where} is not available: ${reason}: ${message}${explain(message, await context.podPort())}`,
    context.commands.kubectl`describe apiservice ${name}`,
  );
}

/** Explains messages of kube-aggregator whose cause is outside the release. `port`: port of the pods. */
export function explain(message: string, port: number): string {
  if (/: 401$|bad status .*401/.test(message))
    return '. The server does not accept the client certificate of kube-apiserver: set --proxy-client-cert-file and --proxy-client-key-file of kube-apiserver to a certificate of its front-proxy CA';
  if (/x509|certificate/.test(message)) return '. kube-apiserver does not trust the serving certificate';
  if (/deadline exceeded|timeout|refused|no route/i.test(message))
    return `. Open port ${port} from the control plane to the pods`;
  return '';
}

/** Sends the request of kube-aggregator's probe, through kube-apiserver. */
async function* discovery(name: string, { reader, commands, now }: Context): AsyncGenerator<Finding> {
  const at = name.indexOf('.');
  const path = `/apis/${name.slice(at + 1)}/${name.slice(0, at)}`;
  const from = now();
  const { status, headers } = await reader.response(path);
  if (status === 403) throw new Stop(notChecked(`needs the right to get ${path}`));
  if (status !== 200) {
    yield failed(`kube-apiserver returned ${status} for ${path}`, commands.kubectl`get --raw ${path}`);
    return;
  }
  yield ok(`kube-apiserver forwards ${path} to the server`);
  const skew = clockSkew(headers['date'], from, now());
  if (skew !== 0)
    yield warning(
      `the clock of this machine is ${describeSkew(skew)} the clock of the server, so tokens of the server may be rejected`,
    );
}
