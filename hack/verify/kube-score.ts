/** Good practices for objects of Kubernetes, checked by kube-score in everything that the chart renders. */
import { basename, join } from 'node:path';
import { execute } from '../cluster/exec.ts';
import { goProgram } from '../cluster/go-program.ts';
import { renderChart, values } from './chart.ts';

const modules = join(import.meta.dirname, 'programs');

/** Checks of kube-score that the chart fails with every or with one file of values, with the reason. */
const accepted: Readonly<Record<string, string>> = {
  'container-ephemeral-storage-request-and-limit':
    'the root file system is read-only; the kubelet rotates the log, and the operator sizes the audit volume',
  'container-image-pull-policy': 'a version of the image never changes; a restart must not need the registry',
  'deployment-has-host-podantiaffinity': 'topologySpreadConstraints spread the pods over nodes and zones',
  'pod-networkpolicy': 'off by default, for the reason in values.yaml',
  'cert-manager-issuer-values.yaml: deployment-replicas': 'an autoscaler sets the number',
  'everything-values.yaml: deployment-strategy': 'sets Recreate; the default is RollingUpdate',
  'nodeport-values.yaml: deployment-replicas': 'sets one replica',
  'nodeport-values.yaml: service-type': 'sets NodePort; the default is ClusterIP',
  'tls-secret-values.yaml: deployment-replicas': 'sets no replica',
};

// A CPU limit would throttle password hashing, so that the default limits memory only.
const flags = ['--ignore-container-cpu-limit', '--output-format=json'];

/** Grade of an object that passes a check. */
const passed = 10;

interface Scored {
  readonly object_name: string;
  readonly checks: readonly {
    readonly check: { readonly id: string };
    readonly grade: number;
    readonly skipped: boolean;
    readonly comments: readonly { readonly path: string; readonly summary: string }[] | null;
  }[];
}

export async function kubeScore(): Promise<string[]> {
  const program = await goProgram(modules, 'github.com/zegl/kube-score/cmd/kube-score');
  const unused = new Set(Object.keys(accepted));
  const problems: string[] = [];
  for (const file of values()) {
    const name = basename(file);
    const input = await renderChart(file);
    const { stdout, stderr } = await execute(program, ['score', ...flags, '-'], { input });
    if (stdout === '') throw new Error(`kube-score printed no scores for ${file}: ${stderr}`);
    for (const { object_name: object, checks } of JSON.parse(stdout) as Scored[])
      for (const { check, grade, skipped, comments } of checks) {
        if (skipped || grade >= passed) continue;
        const reason = [check.id, `${name}: ${check.id}`].find((one) => one in accepted);
        if (reason !== undefined) {
          unused.delete(reason);
          continue;
        }
        const summaries = (comments ?? []).map(({ path, summary }) => [path, summary].filter(Boolean).join(': '));
        problems.push(`${name}: ${object}: ${check.id}: ${summaries.join('; ')}`);
      }
  }
  return [...problems, ...[...unused].map((id) => `kube-score.ts accepts ${id}, which nothing fails`)];
}
