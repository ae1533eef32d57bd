/** Logs of kube-apiserver that show which credentials are in use. */
import { createReadStream, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { logFile } from '../../../hack/cluster/processes.ts';
import { namespace, release } from '../release.ts';

/** Flag that logs each certificate that kube-apiserver loads. */
export const proxyCertificateLog = ['--vmodule=dynamic_serving_content=2'];

const auditLog = (folder: string): string => join(folder, 'kube-apiserver-audit.log');

/** Writes a policy that audits only the requests of the server. Returns the flags. */
export function serverAuditFlags(folder: string): string[] {
  const policy = join(folder, 'audit-policy.json');
  const rules = [{ level: 'Metadata', users: [`system:serviceaccount:${namespace}:${release}`] }, { level: 'None' }];
  const omitStages = ['RequestReceived', 'ResponseStarted'];
  writeFileSync(policy, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages, rules }));
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${auditLog(folder)}`];
}

/**
 * Returns a function that resolves with whether kube-apiserver has loaded another client certificate of the aggregator
 * since this call.
 */
export async function watchProxyCertificate(folder: string): Promise<() => Promise<boolean>> {
  const read = await follow(logFile(folder, 'kube-apiserver'));
  let isLoaded = false;
  return async () => {
    isLoaded ||= (await read()).some((line) => /"Loaded a new .*"aggregator-proxy-cert/.test(line));
    return isLoaded;
  };
}

/**
 * Returns a function that resolves with the ids (jti) of the tokens with which the servers have sent requests to
 * kube-apiserver since this call.
 */
export async function watchTokens(folder: string): Promise<() => Promise<ReadonlySet<string>>> {
  const read = await follow(auditLog(folder));
  const used = new Set<string>();
  return async () => {
    for (const line of await read()) {
      const [, id] = /"JTI=([^"]+)"/.exec(line) ?? [];
      if (id !== undefined) used.add(id);
    }
    return used;
  };
}

/** Returns a function that resolves with the lines that were appended to a file since its previous call. */
async function follow(file: string): Promise<() => Promise<string[]>> {
  let { size: offset } = await stat(file);
  let rest = '';
  return async () => {
    const added = await buffer(createReadStream(file, { start: offset }));
    offset += added.length;
    const lines = `${rest}${added.toString()}`.split('\n');
    rest = lines.pop() ?? '';
    return lines;
  };
}
