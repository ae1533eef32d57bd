/** Data that the checks share: the objects of the release, and the caller's own identity. */
import { parseFlags, UsageError, type Flags } from '../../config/flags.ts';
import { isSubdomain, objectKeys } from '../../config/names.ts';
import { configMapKey, parseConfiguration, type Parsed } from '../../config/parse.ts';
import type { ConfigMap } from '../../cluster/objects.ts';
import { Commands } from './commands.ts';
import { servedChain, type Endpoint } from './endpoint.ts';
import { resources, type Reader } from './reader.ts';
import type { APIService, Deployment, EndpointSlice, Pod, Service } from './objects.ts';
import type { PresentedChain } from '../../auth/authenticators/client-chain.ts';

/** Name of the Deployment in the chart. */
export const deploymentName = 'platform-apiserver';
/** Name of the server's container in its pods, which may also have injected containers. */
export const containerName = 'platform-apiserver';
/** Name of the Service port to which kube-apiserver connects. */
export const aggregatedPort = 'aggregated';
/** Maximum number of replicas that the doctor connects to. */
const maxEndpoints = 10;

export interface Caller {
  /** URL of kube-apiserver. */
  readonly server: string;
  readonly isInPod: boolean;
  /** Token of a ServiceAccount; undefined for other credentials, which the doctor sends only to kube-apiserver. */
  serviceAccountToken(): Promise<string | undefined>;
}

export interface ContextOptions {
  readonly reader: Reader;
  readonly caller: Caller;
  readonly commands: Commands;
  readonly namespace: string;
  readonly service: string;
  /** Resolves a host name within a few seconds. Throws an error with the code of Node.js. */
  readonly lookup: (host: string) => Promise<unknown>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export class Context {
  readonly reader: Reader;
  readonly caller: Caller;
  readonly commands: Commands;
  readonly namespace: string;
  readonly serviceName: string;
  readonly lookup: ContextOptions['lookup'];
  readonly now: () => number;
  /** Texts that replicas report about themselves, by file name, for the support bundle. */
  readonly reports = new Map<string, string>();
  #served: Promise<PresentedChain | undefined> | undefined;

  constructor({ reader, caller, commands, namespace, service, lookup, now }: ContextOptions) {
    this.reader = reader;
    this.caller = caller;
    this.commands = commands;
    this.namespace = namespace;
    this.serviceName = service;
    this.lookup = lookup;
    this.now = now;
  }

  /** Name for which kube-apiserver verifies the serving certificate. */
  get host(): string {
    return `${this.serviceName}.${this.namespace}.svc`;
  }

  deployment(): Promise<Deployment | undefined> {
    return this.reader.get(resources.deployments, deploymentName, this.namespace);
  }

  /** Returns the name of the Helm release. An invalid name, which could be a flag in a command, is ignored. */
  async release(): Promise<string> {
    const name = (await this.deployment())?.metadata.annotations?.['meta.helm.sh/release-name'] ?? '';
    return isSubdomain(name) ? name : deploymentName;
  }

  /** Returns the command that applies the objects of the release again. */
  async restore(): Promise<string> {
    return this.commands.restore(await this.release());
  }

  /** Returns the port of the pods to which kube-apiserver connects. */
  async podPort(): Promise<number> {
    const [container] = (await this.deployment())?.spec.template.spec.containers ?? [];
    return container?.ports?.find(({ name }) => name === aggregatedPort)?.containerPort ?? 10_250;
  }

  service(): Promise<Service | undefined> {
    return this.reader.get(resources.services, this.serviceName, this.namespace);
  }

  apiService(name: string): Promise<APIService | undefined> {
    return this.reader.get(resources.apiServices, name);
  }

  /** Returns the label selector of the pods. */
  async podSelector(): Promise<string> {
    const labels = (await this.deployment())?.spec.selector.matchLabels ?? { 'app.kubernetes.io/name': deploymentName };
    return Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',');
  }

  /** Returns the pods that have not terminated. Evicted pods still exist, with the same labels. */
  async pods(): Promise<readonly Pod[]> {
    const labelSelector = await this.podSelector();
    const all = await this.reader.list<Pod>(resources.pods, this.namespace, { labelSelector });
    return all.filter(({ status }) => status?.phase !== 'Failed' && status?.phase !== 'Succeeded');
  }

  /** Returns the ServiceAccount of the pods. */
  async serviceAccount(): Promise<string> {
    return (await this.deployment())?.spec.template.spec.serviceAccountName ?? deploymentName;
  }

  /** Returns the flags of the container, or the default flags if they cannot be parsed. */
  async flags(): Promise<Flags> {
    const [container] = (await this.deployment())?.spec.template.spec.containers ?? [];
    const defaults = [`--namespace=${this.namespace}`, `--service-name=${this.serviceName}`];
    const args = container?.args?.map((arg) => arg.replaceAll('$(POD_NAMESPACE)', this.namespace)) ?? defaults;
    try {
      return parseFlags(args, { POD_NAMESPACE: this.namespace });
    } catch (error) {
      // The image may be newer than the doctor. The log of the pod reports flags that the image does not know.
      if (!(error instanceof UsageError)) throw error;
      return parseFlags(defaults, {});
    }
  }

  async configMap(): Promise<ConfigMap | undefined> {
    return await this.reader.get<ConfigMap>(resources.configMaps, (await this.flags()).configMap, this.namespace);
  }

  /** Returns the configuration in the ConfigMap; undefined if there is none. */
  async configuration(): Promise<Parsed | undefined> {
    const text = (await this.configMap())?.data?.[objectKeys.config];
    return text === undefined ? undefined : parseConfiguration(text, configMapKey);
  }

  /** Returns the ready endpoints for kube-apiserver. */
  async endpoints(): Promise<readonly Endpoint[]> {
    const labelSelector = `kubernetes.io/service-name=${this.serviceName}`;
    const slices = await this.reader.list<EndpointSlice>(resources.endpointSlices, this.namespace, {
      labelSelector,
    });
    return slices
      .flatMap(({ endpoints, ports }) => {
        const port = ports?.find(({ name }) => name === aggregatedPort)?.port;
        const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false);
        return port === undefined
          ? []
          : ready.flatMap(({ addresses }) => addresses.map((address) => ({ address, port })));
      })
      .slice(0, maxEndpoints);
  }

  /** Returns the certificates that a replica presents; undefined if the doctor reaches no replica. */
  served(): Promise<PresentedChain | undefined> {
    this.#served ??= this.#connect();
    return this.#served;
  }

  async #connect(): Promise<PresentedChain | undefined> {
    for (const endpoint of await this.endpoints()) {
      const chain = await servedChain(endpoint, this.host);
      if (chain !== undefined) return chain;
    }
    return undefined;
  }
}
