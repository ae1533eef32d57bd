/**
 * Builds the components on which all other components depend: the Kubernetes client, the configuration with its
 * Secrets, and the lease.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { ConfigurationFile } from '../config/file-source.ts';
import type { Flags } from '../config/flags.ts';
import { LiveConfiguration } from '../config/live.ts';
import { objectNames } from '../config/names.ts';
import { formatProblem } from '../config/parse.ts';
import type { Lifecycle } from '../runtime/lifecycle.ts';
import type { Logger } from '../runtime/logger.ts';
import { configurationProblems, leader, upstreamConnections } from '../runtime/metrics/definitions.ts';
import type { Clock } from '../runtime/time.ts';
import type { Cluster } from './client/client.ts';
import { FieldSchemas } from './field-schemas.ts';
import { PlatformConfigSource } from './config-map-source.ts';
import { Lease } from './lease.ts';
import { SecretRefs } from './secret-refs.ts';

/** Dependencies of the builders of all other components. */
export interface ClusterParts {
  readonly client: Cluster;
  readonly namespace: string;
  readonly live: LiveConfiguration;
  readonly secrets: SecretRefs;
  readonly fieldSchemas: FieldSchemas;
  readonly lease: Pick<Lease, 'isHeld'>;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  readonly log: Logger;
}

export function buildCluster(
  flags: Pick<Flags, 'namespace' | 'config' | 'configMap'>,
  given: Pick<ClusterParts, 'client' | 'lifecycle' | 'clock' | 'log'>,
): ClusterParts {
  const { client, lifecycle, clock, log } = given;
  const { namespace, config: file, configMap: name } = flags;
  const live = new LiveConfiguration();
  live.warned.subscribe((warnings) => {
    const problems = warnings.map(formatProblem);
    if (problems.length > 0) log.warn('configuration has unresolved references', { problems });
    else log.info('all references of the configuration are resolved');
  });
  live.subscribe(({ log: { level } }) => {
    log.level = level;
  });
  configurationProblems.read(() => [[{}, live.problems.length + live.warnings.length]]);
  upstreamConnections.read(() => {
    const { busy, idle } = client.upstream.connections;
    return [
      [{ state: 'busy' }, busy],
      [{ state: 'idle' }, idle],
    ];
  });
  lifecycle.add('client', { stop: () => client.close() });
  const source =
    file === undefined
      ? new PlatformConfigSource({ client, namespace, name, live, clock, log })
      : new ConfigurationFile({ file, live, log });
  lifecycle.add('configuration', {
    start: (signal) => source.start(signal),
    warning: () => warningOf(live),
    stop: () => source.stop(),
  });
  const identity = `${hostname()}_${randomUUID()}`;
  const lease = lifecycle.add('lease', new Lease({ client, namespace, name: objectNames.lease, identity, clock, log }));
  leader.read(() => [[{}, lease.isHeld() ? 1 : 0]]);
  const secrets = lifecycle.add('secrets', new SecretRefs({ client, namespace, clock, log }));
  return { ...given, namespace, live, secrets, lease, fieldSchemas: new FieldSchemas(client) };
}

function warningOf({ problems, warnings }: LiveConfiguration): string {
  const rejected = `the latest configuration was rejected: ${problems.map(formatProblem).join('; ')}`;
  return [...(problems.length === 0 ? [] : [rejected]), ...warnings.map(formatProblem)].join('; ');
}
