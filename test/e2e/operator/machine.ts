/** The machine of an operator who follows docs/guides/operators-day.md. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { Shell } from '../../labs/integration/shell.ts';
import type { Cluster } from '../cluster.ts';
import { tool } from '../machine/packages.ts';
import { tagImage } from '../node/containerd.ts';
import { chart } from '../release.ts';

/** Divisor of the durations in the alerts, which would take hours otherwise. */
const divisor = 30;
const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Shortens the delays and the time ranges in a rule file. The expressions stay the same otherwise. */
const shorten = (rules: string): string =>
  rules.replaceAll(
    /(?<=\[|^ *for: )(\d+)([smhd])/gm,
    (_, count: string, unit: string) => `${(Number(count) * (units[unit] ?? NaN)) / divisor}s`,
  );

/** Returns a shell with the documented variables, programs and names. */
export async function startOperatorShell({ folder, env, image, nodeAddress }: Cluster): Promise<Shell> {
  const home = join(folder, 'operator');
  mkdirSync(join(home, 'bin'), { recursive: true });

  const rules = join(home, 'chart/monitoring/rules.yaml');
  cpSync(chart, join(home, 'chart'), { recursive: true });
  writeFileSync(rules, shorten(readFileSync(rules, 'utf8')));

  const script = join(import.meta.dirname, '../../../src/main.ts');
  writeFileSync(join(home, 'bin/platform-apiserver'), `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`, {
    mode: 0o755,
  });

  const hosts = join(home, 'hosts');
  writeFileSync(hosts, `${readFileSync('/etc/hosts', 'utf8')}\n${nodeAddress} platform.example.com\n`);
  await output(tool('mount'), ['--bind', hosts, '/etc/hosts']);

  const next = 'next';
  await tagImage(`${image.repository}:${image.tag}`, `${image.repository}:${next}`);
  const { kubectl, helm } = await programs(['kubectl', 'helm']);
  const path = [join(home, 'bin'), dirname(kubectl), dirname(helm), process.env['PATH']].join(':');
  const variables = { IMAGE: image.repository, VERSION: image.tag, NEXT: next, CHART: join(home, 'chart') };
  return new Shell(home, { ...env, ...variables, HOME: home, PATH: path });
}
