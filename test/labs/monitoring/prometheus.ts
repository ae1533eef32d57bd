/** Starts a real Prometheus that scrapes both replicas of the lab and kube-apiserver. */
import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { freePort } from '../../../hack/cluster/chosen.ts';
import type { RunningService } from '../../../hack/cluster/running.ts';
import { startPrometheus } from '../../../hack/monitoring/prometheus.ts';
import { release } from '../../../hack/run/chart.ts';
import { bind, createServiceAccount, serviceAccountToken } from '../integration/kube.ts';
import { lab } from '../integration/lab.ts';
import { rulesFile } from './sources.ts';

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A time series of a range query. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Values at the times of the query; null where the time series has no number. */
  readonly values: readonly (number | null)[];
}

export interface RuleState {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

export interface Prometheus {
  /** Returns the current samples of an expression. Throws if Prometheus rejects the expression. */
  query(expr: string): Promise<Sample[]>;
  /** Returns the values of an expression at times in Unix seconds, which have equal distances. */
  queryRange(expr: string, times: readonly number[]): Promise<Series[]>;
  /** Returns the states of all rules. */
  rules(): Promise<RuleState[]>;
  stop(): Promise<void>;
}

/** Writes a file that only Prometheus reads, and returns its path. */
function file(name: string, text: string | Buffer): string {
  const path = join(lab().dir, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

const decoded = (name: string, text = ''): string => file(name, Buffer.from(text, 'base64'));

/**
 * Returns the scrape job for the replicas. Prometheus scrapes them over TLS with the token of a ServiceAccount, as the
 * ServiceMonitor of the chart does.
 */
async function replicasJob(): Promise<object> {
  const { name: reader } = (await createServiceAccount('prometheus')).metadata;
  await bind('prometheus-metrics', 'platform-metrics-reader', {
    kind: 'ServiceAccount',
    name: reader,
    namespace: 'default',
  });
  const { authorityFile, replicas } = lab();
  return {
    job_name: release.name,
    scheme: 'https',
    authorization: { credentials_file: file('prometheus-token', await serviceAccountToken(reader)) },
    tls_config: { ca_file: authorityFile, server_name: `${release.name}.${release.namespace}.svc` },
    static_configs: replicas.map(({ https }, index) => ({
      targets: [`127.0.0.1:${https}`],
      labels: { namespace: release.namespace, pod: `${release.name}-${index}` },
    })),
  };
}

/** Returns the scrape job for kube-apiserver, with the credentials of the administrator. */
async function apiserverJob(): Promise<object> {
  const { clusters, users } = parse(await readFile(lab().kubeconfig, 'utf8')) as Kubeconfig;
  const { server = '', ...cluster } = clusters[0]?.cluster ?? {};
  const user = users[0]?.user ?? {};
  return {
    job_name: 'apiserver',
    scheme: 'https',
    tls_config: {
      ca_file: decoded('prometheus-ca.crt', cluster['certificate-authority-data']),
      cert_file: decoded('prometheus.crt', user['client-certificate-data']),
      key_file: decoded('prometheus.key', user['client-key-data']),
    },
    static_configs: [{ targets: [new URL(server).host] }],
  };
}

/** Returns a number that can be drawn, or null. */
const finite = (value: number | undefined): number | null => (Number.isFinite(value) ? (value as number) : null);

export async function startPrometheusInLab(): Promise<Prometheus> {
  const service: RunningService = await startPrometheus(join(lab().dir, 'prometheus'), await freePort(19_090), {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [rulesFile],
    scrape_configs: [await replicasJob(), await apiserverJob()],
  });

  async function request<T>(path: string): Promise<T> {
    const response = await fetch(`${service.url}/api/v1/${path}`);
    const body = (await response.json()) as { readonly data: T; readonly error?: string };
    if (!response.ok) throw new Error(`${body.error}: ${decodeURIComponent(path)}`);
    return body.data;
  }

  return {
    async query(expr) {
      const { result } = await request<{
        result: readonly { readonly metric: Sample['metric']; readonly value: readonly [number, string] }[];
      }>(`query?query=${encodeURIComponent(expr)}`);
      return result.map(({ metric, value: [, value] }) => ({
        metric,
        value: Number(value.replace('Inf', 'Infinity')),
      }));
    },
    async queryRange(expr, times) {
      const [start = 0, second = start + 1] = times;
      const range = { query: expr, start: String(start), end: String(times.at(-1)), step: String(second - start) };
      const { result } = await request<{
        result: readonly { readonly metric: Series['metric']; readonly values: readonly [number, string][] }[];
      }>(`query_range?${new URLSearchParams(range).toString()}`);
      return result.map(({ metric, values }) => {
        const numbers = new Map(values.map(([time, value]) => [time, Number(value)]));
        return { metric, values: times.map((time) => finite(numbers.get(time))) };
      });
    },
    async rules() {
      const { groups } = await request<{ groups: readonly { readonly rules: readonly RuleState[] }[] }>('rules');
      return groups.flatMap((group) => group.rules);
    },
    stop: () => service.stop(),
  };
}
