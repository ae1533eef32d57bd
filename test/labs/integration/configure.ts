/** Changes of the cluster configuration object, waited for until both replicas have judged them. */
import { parse, stringify } from 'yaml';
import { eventually } from './eventually.ts';
import { get, patch, releasePath, type KubeObject } from './kube.ts';
import { readLog } from './log.ts';
import { replicaLogs } from './servers.ts';

const configMap = `${releasePath}/configmaps/platform-config`;
const key = 'platform.yaml';

type ConfigMap = KubeObject & { readonly data: Readonly<Record<string, string>> };

/** platform.yaml, as far as tests change it. */
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

/** Writes platform.yaml, waits until both replicas have judged just that, and answers the problems that they found. */
export async function writeText(text: string): Promise<readonly string[]> {
  const { resourceVersion } = (await patch(configMap, { data: { [key]: text } })).metadata;
  const verdicts = await eventually('both replicas have judged the configuration', () =>
    replicaLogs().map((file) => {
      const verdict = readLog(file).findLast(
        (line) => /^configuration (accepted|refused)/.test(line.message) && line['resourceVersion'] === resourceVersion,
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

/** The same for one that must be accepted. */
async function accept(text: string): Promise<void> {
  const problems = await writeText(text);
  if (problems.length > 0) throw new Error(`the configuration was refused: ${problems.join('; ')}`);
}

/** Changes the configuration that is in force; answers what puts back the one before. */
export async function configure(change: (configuration: Configuration) => void): Promise<() => Promise<void>> {
  const text = await readText();
  const configuration = parse(text) as Configuration;
  change(configuration);
  await accept(stringify(configuration));
  return () => accept(text);
}
