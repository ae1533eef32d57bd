/** Changes of the cluster configuration object, waited for until both replicas have judged them. */
import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { eventually } from './eventually.ts';
import { get, patch, releasePath, type KubeObject } from './kube.ts';
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

/** One line of a server's log. */
export interface LogLine {
  readonly time: string;
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** The complete lines of a log so far; throws for one that is no JSON. */
export const readLog = (file: string): LogLine[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as LogLine);

/** How many configurations the server of this log has judged. */
const judged = (file: string): number =>
  readLog(file).filter(({ message }) => /^configuration (accepted|refused)/.test(message)).length;

/** Writes platform.yaml and resolves when both replicas have accepted or refused just that. */
export async function writeText(text: string): Promise<void> {
  const before = await get<ConfigMap>(configMap);
  const logs = replicaLogs();
  const counts = logs.map(judged);
  const { metadata } = await patch(configMap, { data: { [key]: text } });
  // Writing what stands there is no change.
  if (metadata.resourceVersion === before.metadata.resourceVersion) return;
  await eventually('both replicas have judged the configuration', () => {
    for (const [index, file] of logs.entries())
      if (judged(file) <= (counts[index] ?? 0)) throw new Error(`${file} does not mention it`);
  });
}

/** Changes the configuration that is in force; answers what puts back the one before. */
export async function configure(change: (configuration: Configuration) => void): Promise<() => Promise<void>> {
  const text = await readText();
  const configuration = parse(text) as Configuration;
  change(configuration);
  await writeText(stringify(configuration));
  return () => writeText(text);
}
