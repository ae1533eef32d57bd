/**
 * `platform-apiserver doctor`: runs checks that show why the API of a release is unavailable. Reads objects and
 * connects to the pods as the caller, and changes nothing.
 */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileAccess, inClusterAccess, type ClusterAccess } from '../../cluster/client/access.ts';
import { createKubeClient, type Cluster } from '../../cluster/client/client.ts';
import { parseDoctorFlags, type DoctorFlags } from '../../config/flags.ts';
import { readVersion } from '../../runtime/package.ts';
import { rfc3339 } from '../../runtime/time.ts';
import { writeBundle } from './bundle.ts';
import { runChecks, type Result } from './check.ts';
import { checks } from './checks/index.ts';
import { Commands } from './commands.ts';
import { Context, type Caller } from './context.ts';
import { resolveHost } from './lookup.ts';
import { Reader } from './reader.ts';
import { formatResult, formatSummary, hasFailed, toJSON } from './report.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Runs the doctor. Returns the exit code: 0 if no check failed, 1 if one failed, 2 if the kubeconfig cannot be read or
 * the bundle cannot be written. Throws UsageError.
 */
export async function doctor(argv: readonly string[], environment: Environment): Promise<number> {
  const flags = parseDoctorFlags(argv);
  try {
    const files = kubeconfigs(flags, environment);
    const access = files.length === 0 ? inClusterAccess(environment) : fileAccess(files, flags.context);
    // The client shares the access, so that a credential plugin runs only once.
    const client = await createKubeClient({ load: () => access });
    return await report(flags, contextOf(flags, client, access, files.length === 0));
  } catch (error) {
    console.error(`doctor: ${(error as Error).message}`);
    return 2;
  }
}

/** Returns the files that kubectl would read; none for the ServiceAccount of the pod. */
function kubeconfigs({ kubeconfig }: DoctorFlags, environment: Environment): string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = environment['KUBECONFIG'] || join(homedir(), '.kube/config');
  return listed.split(delimiter).filter((file) => file !== '' && existsSync(file));
}

function contextOf(flags: DoctorFlags, client: Cluster, access: ClusterAccess, isInPod: boolean): Context {
  const { namespace, service } = flags;
  const caller: Caller = {
    server: access.server,
    isInPod,
    async serviceAccountToken() {
      const { Authorization: header } = await access.headers();
      const { username } = await client.identity();
      return username.startsWith('system:serviceaccount:') ? header?.replace(/^Bearer /, '') : undefined;
    },
  };
  return new Context({
    reader: new Reader(client),
    caller,
    commands: new Commands(flags),
    namespace,
    service,
    lookup: (host) => resolveHost(host),
    now: () => Date.now(),
  });
}

async function report(flags: DoctorFlags, context: Context): Promise<number> {
  const { namespace, service, output, bundle } = flags;
  const results: Result[] = [];
  for await (const result of runChecks(checks, context)) {
    results.push(result);
    // Results are printed one by one, because the doctor's pod may be stopped before the last check ends.
    if (output === 'text') console.log(formatResult(result));
  }
  const result = toJSON(results, { version: readVersion(), time: rfc3339(Date.now()), namespace, service });
  console.log(output === 'json' ? JSON.stringify(result, undefined, 2) : `\n${formatSummary(results)}`);
  if (bundle !== undefined) {
    await writeBundle(bundle, result, context).catch((cause: unknown) => {
      throw new Error(`--bundle: ${(cause as Error).message}`, { cause });
    });
    console.error(`wrote ${bundle}`);
  }
  return hasFailed(results) ? 1 : 0;
}
