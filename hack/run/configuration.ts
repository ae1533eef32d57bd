import { parse } from 'yaml';
import { objectKeys } from '../../src/config/names.ts';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { isKubeError } from '../../src/cluster/client/kube-error.ts';
import { release } from './chart.ts';

type Section = Readonly<Record<string, unknown>>;

/**
 * Returns the configuration in the cluster with `changes` merged into its sections, so that an upgrade of the chart
 * keeps manual edits. Throws if the configuration is not YAML.
 */
export async function keepConfiguration(
  kube: KubeClient,
  changes: Readonly<Record<string, Section>>,
): Promise<Section> {
  const path = `/api/v1/namespaces/${release.namespace}/configmaps/platform-config`;
  const present = await kube.json<{ data?: Record<string, string> }>(path).catch((error: unknown) => {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  });
  const configuration = (read(present?.data?.[objectKeys.config] ?? '') ?? {}) as Record<string, Section | undefined>;
  const sections = Object.entries(changes).map(([name, section]) => [name, { ...configuration[name], ...section }]);
  return { ...configuration, ...(Object.fromEntries(sections) as Section) };
}

function read(text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    throw new Error(
      `ConfigMap platform-config contains no YAML; fix it, or delete it to start again: ${String(cause)}`,
      {
        cause,
      },
    );
  }
}
