/**
 * Loads the configuration from its ConfigMap and watches it: a change takes effect within a second. An invalid
 * configuration is rejected as a whole and reported by an Event. The last accepted configuration is saved, so that a
 * restart can use it while the current configuration is invalid.
 */
import type { LiveConfiguration } from '../config/live.ts';
import { objectKeys, objectNames } from '../config/names.ts';
import { configMapKey, formatProblem, parseConfiguration, type Problem } from '../config/parse.ts';
import type { Logger } from '../runtime/logger.ts';
import type { KubeClient } from './client/client.ts';
import { rfc3339, type Clock } from '../runtime/time.ts';
import { ensureConfigMap, type ConfigMap } from './objects.ts';
import { Informer } from './cache/informer.ts';

/** Annotation of the saved configuration: the name of the ConfigMap that contained it. */
const originAnnotation = 'platform.io/accepted-from';
/** Maximum characters of the message of an Event; kube-apiserver allows 1,024 bytes. */
const maxEventMessage = 1_000;

export class PlatformConfigSource {
  readonly #client: KubeClient;
  readonly #namespace: string;
  readonly #name: string;
  readonly #live: LiveConfiguration;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #informer: Informer<ConfigMap>;
  #saving: Promise<void> = Promise.resolve();

  constructor(options: {
    client: KubeClient;
    namespace: string;
    name: string;
    live: LiveConfiguration;
    clock: Clock;
    log: Logger;
  }) {
    this.#client = options.client;
    this.#namespace = options.namespace;
    this.#name = options.name;
    this.#live = options.live;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#informer = new Informer<ConfigMap>({
      client: options.client,
      path: `/api/v1/namespaces/${options.namespace}/configmaps`,
      fieldSelector: `metadata.name=${options.name}`,
      clock: options.clock,
      log: options.log,
    });
    options.live.warned.subscribe((warnings) => {
      const configMap = this.#informer.get(this.#namespace, this.#name);
      if (configMap !== undefined && warnings.length > 0)
        this.#writeEvent(configMap, 'ConfigurationIncomplete', warnings);
    });
    this.#informer.onChange((type, configMap) => {
      if (type === 'DELETED') this.#reject(configMap, [{ path: '', message: `ConfigMap ${this.#name} was deleted` }]);
      else this.#apply(configMap);
    });
  }

  /** Resolves when a configuration is active. Throws if neither the current nor a saved configuration is valid. */
  async start(signal: AbortSignal): Promise<void> {
    this.#informer.start();
    await this.#informer.waitForSync(signal);
    if (this.#informer.get(this.#namespace, this.#name) === undefined)
      this.#live.refuse([{ path: '', message: `ConfigMap ${this.#namespace}/${this.#name} does not exist` }]);
    if (!this.#live.accepted) await this.#restore();
  }

  async stop(): Promise<void> {
    this.#informer.stop();
    await this.#saving;
  }

  #apply(configMap: ConfigMap): void {
    const text = configMap.data?.[objectKeys.config];
    if (text === undefined) {
      this.#reject(configMap, [{ path: `data.${objectKeys.config}`, message: 'is missing' }]);
      return;
    }
    const parsed = parseConfiguration(text, configMapKey);
    if (!parsed.ok) {
      this.#reject(configMap, parsed.problems);
      return;
    }
    this.#live.accept(parsed.value);
    this.#log.info('configuration accepted', { resourceVersion: configMap.metadata.resourceVersion });
    this.#enqueue('saving the accepted configuration failed', () => this.#save(text));
  }

  #reject(configMap: ConfigMap, problems: readonly Problem[]): void {
    this.#live.refuse(problems);
    this.#log.error('configuration rejected, keeping the last valid one', {
      resourceVersion: configMap.metadata.resourceVersion,
      problems: problems.map(formatProblem),
    });
    this.#writeEvent(configMap, 'ConfigurationRefused', problems);
  }

  async #restore(): Promise<void> {
    const problems = this.#live.problems;
    const path = `/api/v1/namespaces/${this.#namespace}/configmaps/${objectNames.acceptedConfigMap}`;
    const saved = await this.#client.json<ConfigMap>(path).catch(() => undefined);
    const hasSameOrigin = saved?.metadata.annotations?.[originAnnotation] === this.#name;
    const parsed = parseConfiguration((hasSameOrigin ? saved.data?.[objectKeys.config] : undefined) ?? '');
    if (!parsed.ok)
      throw new Error(
        `no valid configuration in ConfigMap ${this.#namespace}/${this.#name}:\n${problems.map(formatProblem).join('\n')}`,
      );
    this.#live.accept(parsed.value);
    this.#live.refuse(problems);
    this.#log.warn('started with the last accepted configuration');
  }

  async #save(text: string): Promise<void> {
    await ensureConfigMap(this.#client, this.#namespace, objectNames.acceptedConfigMap, {
      data: { [objectKeys.config]: text },
      annotations: { [originAnnotation]: this.#name },
    });
  }

  #writeEvent(configMap: ConfigMap, reason: string, problems: readonly Problem[]): void {
    const now = rfc3339(this.#clock.now());
    const { name, uid, resourceVersion } = configMap.metadata;
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: `${this.#name}.`, namespace: this.#namespace },
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name, namespace: this.#namespace, uid, resourceVersion },
      type: 'Warning',
      reason,
      message: problems.map(formatProblem).join('; ').slice(0, maxEventMessage),
      source: { component: 'platform-apiserver' },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    };
    this.#enqueue('writing an Event failed', async () => {
      await this.#client.json(`/api/v1/namespaces/${this.#namespace}/events`, { method: 'POST', body });
    });
  }

  /** Runs the writes one after the other. A failed write is only logged; it does not affect the configuration. */
  #enqueue(failure: string, task: () => Promise<void>): void {
    this.#saving = this.#saving.then(task).catch((error: unknown) => {
      this.#log.warn(failure, { error });
    });
  }
}
