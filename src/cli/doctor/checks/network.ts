/** Checks the network paths to the pods: NetworkPolicies, DNS, and the connection from kube-apiserver. */
import { failed, notChecked, ok, Stop, type Check, type Finding } from '../check.ts';
import { aggregatedPort } from '../context.ts';
import { matches, type NetworkPolicy } from '../objects.ts';
import { NoResponse, resources } from '../reader.ts';
import { kubeApiserver } from './kube-apiserver.ts';
import { endpoints } from './workload.ts';

export const networkPolicies: Check = {
  name: 'network policies',
  needs: [kubeApiserver.name],
  async *run(context) {
    const { reader, commands, namespace } = context;
    const labels = (await context.deployment())?.spec.template.metadata?.labels ?? {};
    const all = await reader.list<NetworkPolicy>(resources.networkPolicies, namespace);
    const selecting = all.filter(({ spec }) => matches(spec.podSelector ?? {}, labels));
    yield policyFinding(selecting, await context.podPort(), commands.inNamespace`describe networkpolicies`);
  },
};

/** Evaluates the policies that select the pods. A connection is allowed if at least one policy allows it. */
export function policyFinding(policies: readonly NetworkPolicy[], port: number, command: string): Finding {
  const names = policies.map(({ metadata }) => metadata.name).join(', ');
  if (names === '') return ok('no NetworkPolicy selects the pods');
  const outgoing = policies.some(({ spec }) => spec.policyTypes?.includes('Egress') === true)
    ? '. They must also allow the pods to connect to kube-apiserver, DNS and all servers in the configuration'
    : '';
  const ingress = policies.filter(({ spec }) => spec.policyTypes?.includes('Ingress') !== false);
  if (ingress.length === 0) return ok(`the NetworkPolicies ${names} select the pods${outgoing}`);
  const rules = ingress
    .flatMap(({ spec }) => spec.ingress ?? [])
    .filter(({ ports = [] }) => ports.length === 0 || ports.some((one) => includesPort(one, port)));
  if (rules.length === 0)
    return failed(
      `the NetworkPolicies ${names} do not allow connections of kube-apiserver to port ${port} of the pods`,
      command,
    );
  return rules.some(({ from = [] }) => from.length === 0)
    ? ok(`the NetworkPolicies ${names} allow port ${port} of the pods from all addresses${outgoing}`)
    : ok(
        `the NetworkPolicies ${names} allow port ${port} of the pods from some addresses, which must include the addresses of kube-apiserver${outgoing}`,
      );
}

function includesPort(
  {
    port,
    endPort,
    protocol = 'TCP',
  }: { readonly port?: number | string; readonly endPort?: number; readonly protocol?: string },
  wanted: number,
): boolean {
  if (protocol !== 'TCP') return false;
  if (typeof port === 'number') return wanted >= port && wanted <= (endPort ?? port);
  return port === undefined || port === aggregatedPort;
}

export const dns: Check = {
  name: 'DNS',
  needs: [kubeApiserver.name],
  async *run(context) {
    const { host, caller, lookup, commands } = context;
    if (!caller.isInPod) {
      yield notChecked(
        'needs to run in a pod, such as the pod of helm test',
        commands.helm`test ${await context.release()} --logs`,
      );
      return;
    }
    yield await lookup(host).then(
      () => ok(`${host} resolves in this pod`),
      (error: Error) =>
        failed(
          `${host} does not resolve in this pod: ${error.message}`,
          commands.kubectl`-n kube-system get pods -l k8s-app=kube-dns`,
        ),
    );
  },
};

/**
 * Timeout in milliseconds. kube-apiserver waits 30 s for a connection whose packets are dropped, and then reports the
 * reason.
 */
const proxyTimeout = 35_000;

/** kube-apiserver's proxy connects to the port of the aggregated API, but does not verify the certificate. */
export const connection: Check = {
  name: 'connection',
  needs: [endpoints.name],
  async *run({ reader, commands, namespace, serviceName }) {
    const path = `/api/v1/namespaces/${namespace}/services/https:${serviceName}:${aggregatedPort}/proxy/livez`;
    const { status, text } = await reader.response(path, proxyTimeout).catch((error: unknown) => {
      if (!(error instanceof NoResponse)) throw error;
      throw new Stop(
        failed(
          `kube-apiserver did not connect to the port ${aggregatedPort} of the pods within ${proxyTimeout / 1_000} s: a firewall, a NetworkPolicy or the network of the nodes may drop the packets`,
          commands.inNamespace`describe networkpolicies`,
        ),
      );
    });
    if (status === 403) yield notChecked(`needs the right to get services/proxy in ${namespace}`);
    else yield connectionFinding(status, text, commands.kubectl`get --raw ${path}`);
  },
};

/** Evaluates a response of kube-apiserver's proxy for Services. */
export function connectionFinding(status: number, text: string, command: string): Finding {
  if (status === 200) return ok(`kube-apiserver connects to the port ${aggregatedPort} of the pods`);
  const message = messageIn(text);
  // The proxy reads Endpoints, not EndpointSlices. Kubernetes creates no Endpoints for a Service without a selector.
  if (message.startsWith('no endpoints available')) return notChecked(`needs Endpoints of the Service: ${message}`);
  return failed(
    `kube-apiserver cannot connect to the port ${aggregatedPort} of the pods, which a firewall, a NetworkPolicy or the network of the nodes may block: ${message}`,
    command,
  );
}

/** Returns the message of a Status, or the text. */
function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { readonly message?: string }).message ?? text;
  } catch {
    return text.trim();
  }
}
