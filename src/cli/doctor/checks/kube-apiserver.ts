/** Checks kube-apiserver itself: its version, its clock, and how it authenticates as an aggregator. */
import { readRequestHeaderConfig } from '../../../auth/authenticators/request-header-config.ts';
import type { ConfigMap } from '../../../cluster/objects.ts';
import { failed, ok, Stop, warning, type Check } from '../check.ts';
import { clockSkew, describeSkew } from '../clock.ts';
import { resources } from '../reader.ts';

/** Minimum minor version of Kubernetes 1 for the chart. */
const minMinor = 31;

export const kubeApiserver: Check = {
  name: 'kube-apiserver',
  needs: [],
  async *run({ reader, caller, commands }) {
    const { status, text } = await reader.response('/version').catch((error: Error) => {
      throw new Stop(failed(error.message, commands.kubectl`version`));
    });
    if (status !== 200) {
      yield failed(
        `kube-apiserver at ${caller.server} returned ${status}${status === 401 ? ': it does not accept your credentials' : ''}`,
        commands.kubectl`auth whoami`,
      );
      return;
    }
    const { gitVersion, minor } = JSON.parse(text) as { readonly gitVersion: string; readonly minor: string };
    yield Number.parseInt(minor) < minMinor
      ? failed(`Kubernetes ${gitVersion} is too old: the chart requires 1.${minMinor}`)
      : ok(`Kubernetes ${gitVersion} at ${caller.server}`);
  },
};

export const clock: Check = {
  name: 'clock',
  needs: [kubeApiserver.name],
  async *run({ reader, now }) {
    const from = now();
    const { headers } = await reader.response('/version');
    const skew = clockSkew(headers['date'], from, now());
    yield skew === 0
      ? ok('the clocks of this machine and of kube-apiserver agree')
      : warning(`the clock of this machine is ${describeSkew(skew)} the clock of kube-apiserver`, 'timedatectl status');
  },
};

const authentication = { namespace: 'kube-system', name: 'extension-apiserver-authentication' } as const;

export const frontProxy: Check = {
  name: 'front proxy',
  needs: [kubeApiserver.name],
  async *run({ reader, commands, now }) {
    const { namespace, name } = authentication;
    const where = `ConfigMap ${namespace}/${name}`;
    const show = commands.kubectl`-n ${namespace} get configmap ${name} -o yaml`;
    const { data } = (await reader.get<ConfigMap>(resources.configMaps, name, namespace)) ?? {};
    if (data === undefined) {
      yield failed(
        `${where} does not exist or is empty: kube-apiserver runs without --requestheader-client-ca-file`,
        show,
      );
      return;
    }
    let config;
    try {
      config = readRequestHeaderConfig(data);
    } catch (error) {
      yield failed(`${where} is malformed: ${(error as Error).message}`, show);
      return;
    }
    const { refused, authorities, allowedNames, usernameHeaders } = config;
    if (refused !== undefined) yield failed(refused, show);
    else if (authorities.every(({ validToDate }) => validToDate.getTime() < now()))
      yield failed(`all CAs in requestheader-client-ca-file of ${where} have expired`, show);
    else if (usernameHeaders.length === 0)
      yield failed(`${where} has no requestheader-username-headers: the server cannot read usernames`, show);
    else
      yield ok(
        `the front-proxy CA of kube-apiserver is valid; accepted common names: ${allowedNames.length === 0 ? 'any' : allowedNames.join(', ')}`,
      );
  },
};
