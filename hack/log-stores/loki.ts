/**
 * Runs a real Loki as one process, which listens on loopback and stores its data in files. Loki is built from the
 * module pinned in programs/go.mod.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goProgram } from '../cluster/go-program.ts';
import { run, type RunningService } from '../cluster/running.ts';

const modules = join(import.meta.dirname, 'programs');

/** Limits that override the defaults for a tenant, by tenant name. */
export type TenantLimits = Readonly<Record<string, Readonly<Record<string, string | number>>>>;

/** Starts Loki with multi-tenancy and its data in `dir`. Loki listens on `port` and `port + 1`. */
export async function startLoki(dir: string, port: number, overrides: TenantLimits = {}): Promise<RunningService> {
  const loki = await goProgram(modules, 'github.com/grafana/loki/v3/cmd/loki');
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'overrides.json'), JSON.stringify({ overrides }));
  const file = join(dir, 'loki.json');
  await writeFile(file, JSON.stringify(configuration(dir, port)));
  return await run({
    name: 'loki',
    url: `http://127.0.0.1:${port}`,
    command: [loki, `-config.file=${file}`, '-target=all'],
    cwd: dir,
    readyPath: '/ready',
  });
}

/**
 * Returns a configuration of Loki. The configuration changes a default only for a single process, for loopback, or for
 * bulk loads of old records.
 */
const configuration = (dir: string, port: number): object => {
  const host = '127.0.0.1';
  const ring = { kvstore: { store: 'inmemory' } };
  return {
    auth_enabled: true,
    analytics: { reporting_enabled: false },
    server: {
      http_listen_address: host,
      http_listen_port: port,
      grpc_listen_address: host,
      grpc_listen_port: port + 1,
      // A record may have 1 MB, so messages with several records are large.
      grpc_server_max_recv_msg_size: 64 * 1024 * 1024,
      grpc_server_max_send_msg_size: 64 * 1024 * 1024,
      log_level: 'warn',
    },
    common: {
      instance_addr: host,
      path_prefix: dir,
      replication_factor: 1,
      ring: { instance_addr: host, ...ring },
      storage: { filesystem: { chunks_directory: join(dir, 'chunks'), rules_directory: join(dir, 'rules') } },
    },
    schema_config: {
      configs: [
        {
          from: '2020-01-01',
          store: 'tsdb',
          object_store: 'filesystem',
          schema: 'v13',
          index: { prefix: 'index_', period: '24h' },
        },
      ],
    },
    memberlist: { bind_addr: [host], advertise_addr: host, join_members: [] },
    frontend: { address: host },
    // Tests write many small chunks that all overlap.
    storage_config: { max_chunk_batch_size: 20_000 },
    // Queries include records in memory, regardless of their age.
    querier: { query_ingesters_within: '0s' },
    ingester: {
      chunk_idle_period: '240h',
      max_chunk_age: '240h',
      lifecycler: { ring: { ...ring, replication_factor: 1 }, final_sleep: '0s', min_ready_duration: '0s' },
    },
    pattern_ingester: { enabled: false },
    runtime_config: { file: join(dir, 'overrides.json') },
    limits_config: {
      reject_old_samples: false,
      max_line_size: '2MB',
      max_global_streams_per_user: 0,
      split_queries_by_interval: '48h',
      split_instant_metric_queries_by_interval: '48h',
      ingestion_rate_mb: 128,
      ingestion_burst_size_mb: 256,
      per_stream_rate_limit: '128MB',
      per_stream_rate_limit_burst: '256MB',
    },
  };
};
