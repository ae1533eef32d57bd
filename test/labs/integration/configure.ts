/** Changes the cluster configuration object, and waits until both replicas have validated the change. */
import { parse, stringify } from 'yaml';
import { eventually } from './eventually.ts';
import { get, patch, releasePath, type KubeObject } from './kube.ts';
import { readLog } from './log.ts';
import { replicaLogs } from './servers.ts';

const configMap = `${releasePath}/configmaps/platform-config`;
const key = 'platform.yaml';

type ConfigMap = KubeObject & { readonly data: Readonly<Record<string, string>> };

/** The parts of platform.yaml that tests change. */
export interface Configuration {
  authentication: {
    [key: string]: unknown;
    users: { username: string; [key: string]: unknown }[];
    clients: { name: string; [key: string]: unknown }[];
    loginLimit: Record<string, unknown>;
  };
  requests?: Record<string, unknown>;
  [key: string]: unknown;
}

export const readText = async (): Promise<string> => (await get<ConfigMap>(configMap)).data[key] ?? '';

/**
 * Writes platform.yaml, waits until both replicas have validated this version, and returns the problems that they
 * found.
 */
export async function writeText(text: string): Promise<readonly string[]> {
  const { resourceVersion } = (await patch(configMap, { data: { [key]: text } })).metadata;
  const verdicts = await eventually('both replicas have validated the configuration', () =>
    replicaLogs().map((file) => {
      const verdict = readLog(file).findLast(
        (line) =>
          /^configuration (accepted|rejected)/.test(line.message) && line['resourceVersion'] === resourceVersion,
      );
      if (verdict === undefined) throw new Error(`${file} does not mention ${resourceVersion}`);
      return verdict;
    }),
  );
  const found = verdicts.map((verdict) => (verdict['problems'] ?? []) as string[]);
  if (JSON.stringify(found[0]) !== JSON.stringify(found[1]))
    throw new Error(`the replicas differ: ${JSON.stringify(found)}`);
  return found[0] ?? [];
}

/** Writes platform.yaml and requires that it is accepted. */
async function accept(text: string): Promise<void> {
  const problems = await writeText(text);
  if (problems.length > 0) throw new Error(`the configuration was rejected: ${problems.join('; ')}`);
}

/** Changes the current configuration, and returns a function that restores the previous one. */
export async function configure(change: (configuration: Configuration) => void): Promise<() => Promise<void>> {
  const text = await readText();
  const configuration = parse(text) as Configuration;
  change(configuration);
  await accept(stringify(configuration));
  return () => accept(text);
}
