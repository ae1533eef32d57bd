/** Checks the pods, and the Service through which kube-apiserver reaches the pods. */
import { apiServices } from '../../../config/names.ts';
import { failed, ok, warning, type Check, type Finding } from '../check.ts';
import { shell } from '../commands.ts';
import { aggregatedPort, containerName, deploymentName, type Context } from '../context.ts';
import { matches, type Pod } from '../objects.ts';
import { kubeApiserver } from './kube-apiserver.ts';

export const pods: Check = {
  name: 'pods',
  needs: [kubeApiserver.name],
  async *run(context) {
    const { commands, namespace } = context;
    const deployment = await context.deployment();
    const where = `Deployment ${namespace}/${deploymentName}`;
    if (deployment === undefined) {
      yield await missing(where, context);
      return;
    }
    const { spec, status } = deployment;
    const { replicas = 1 } = spec;
    if (replicas === 0) {
      yield (await context.endpoints()).length > 0
        ? ok(`${where} has no replicas: the server runs outside the Deployment`)
        : warning(`${where} has no replicas`, commands.inNamespace`scale deployment ${deploymentName} --replicas=2`);
      return;
    }
    const running = (await context.pods()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const findings = running.flatMap((pod) => podFindings(pod, context));
    yield* findings;
    const failure = status?.conditions?.find(({ type }) => type === 'ReplicaFailure');
    if (failure !== undefined || running.length === 0)
      yield failed(
        `${where} cannot create pods: ${failure?.message ?? 'no pod exists'}`,
        commands.inNamespace`describe replicasets -l ${await context.podSelector()}`,
      );
    else if (findings.length === 0) yield ok(`${running.length} of ${replicas} pods of ${where} are ready`);
  },
};

/** Reports a missing Deployment. If the APIService names another Service, also reports that Service. */
async function missing(where: string, context: Context): Promise<Finding> {
  const { namespace, serviceName } = context;
  const { service } = (await context.apiService(apiServices[0]))?.spec ?? {};
  if (service === undefined || (service.namespace === namespace && service.name === serviceName))
    return failed(`${where} does not exist`, await context.restore());
  return failed(
    `${where} does not exist, and APIService ${apiServices[0]} names Service ${service.namespace}/${service.name}`,
    shell`platform-apiserver doctor --namespace=${service.namespace} --service=${service.name}`,
  );
}

const isTrue = ({ status }: Pod, wanted: string): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === wanted && value === 'True') ?? false;

/** Returns the problems of a pod. */
export function podFindings(pod: Pod, { commands, namespace }: Pick<Context, 'commands' | 'namespace'>): Finding[] {
  const { name } = pod.metadata;
  const { conditions = [], containerStatuses = [] } = pod.status ?? {};
  const container = containerStatuses.find((one) => one.name === containerName);
  const where = `Pod ${namespace}/${name}`;
  const describe = commands.inNamespace`describe pod ${name}`;
  const log = commands.inNamespace`logs ${name} --tail=20`;
  const unscheduled = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
  if (unscheduled !== undefined) return [failed(`${where} is not scheduled: ${unscheduled.message ?? ''}`, describe)];
  const { waiting } = container?.state ?? {};
  const { terminated } = container?.lastState ?? {};
  const restarts = container?.restartCount ?? 0;
  const last =
    terminated === undefined ? '' : `, last: ${terminated.reason ?? 'Error'} with exit code ${terminated.exitCode}`;
  const history = `restarts: ${restarts}${last}`;
  if (waiting !== undefined && waiting.reason !== 'ContainerCreating') {
    const crashed = waiting.reason === 'CrashLoopBackOff';
    return [
      failed(
        `${where} does not start: ${waiting.reason ?? ''} ${crashed ? `(${history})` : (waiting.message ?? '')}`.trim(),
        crashed ? `${log} --previous` : describe,
      ),
    ];
  }
  // A container that has not started has no log.
  if (!isTrue(pod, 'Ready'))
    return [failed(`${where} is not ready`, container?.state?.running === undefined ? describe : log)];
  return restarts === 0
    ? []
    : [warning(`${where} is ready, but its container has restarted (${history})`, `${log} --previous`)];
}

export const service: Check = {
  name: 'service',
  needs: [kubeApiserver.name],
  async *run(context) {
    const { commands, namespace, serviceName } = context;
    const where = `Service ${namespace}/${serviceName}`;
    const found = await context.service();
    const deployment = await context.deployment();
    if (found === undefined) {
      yield failed(`${where} does not exist`, commands.inNamespace`get services`);
      return;
    }
    const { selector = {}, ports = [] } = found.spec;
    const labels = deployment?.spec.template.metadata?.labels;
    if (labels !== undefined && !matches({ matchLabels: selector }, labels))
      yield failed(
        `the selector of ${where} does not match the pods of Deployment ${deploymentName}: ${JSON.stringify(selector)}`,
        await context.restore(),
      );
    else if (!ports.some(({ name }) => name === aggregatedPort))
      yield failed(`${where} has no port named ${aggregatedPort}`, await context.restore());
    else yield ok(`${where} selects the pods`);
  },
};

export const endpoints: Check = {
  name: 'endpoints',
  needs: [pods.name, service.name],
  async *run(context) {
    const { commands, namespace, serviceName } = context;
    const { length } = await context.endpoints();
    yield length === 0
      ? failed(
          `Service ${namespace}/${serviceName} has no ready endpoint for the port ${aggregatedPort}`,
          commands.inNamespace`get endpointslices -l kubernetes.io/service-name=${serviceName} -o yaml`,
        )
      : ok(`Service ${namespace}/${serviceName} has ready endpoints: ${length}`);
  },
};
