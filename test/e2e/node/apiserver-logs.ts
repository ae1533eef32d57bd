/** Logs of kube-apiserver that show which credentials are in use. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { logFile } from '../../../hack/cluster/processes.ts';
import { namespace, release } from '../release.ts';

/** Flag that logs each certificate that kube-apiserver loads. */
export const proxyCertificateLog = ['--vmodule=dynamic_serving_content=2'];

/** Returns how often kube-apiserver has loaded the client certificate of the aggregator. */
export const proxyCertificateLoads = (folder: string): number =>
  readFileSync(logFile(folder, 'kube-apiserver'), 'utf8').match(/"Loaded a new .*"aggregator-proxy-cert/g)?.length ?? 0;

const auditLog = (folder: string): string => join(folder, 'kube-apiserver-audit.log');

/** Writes a policy that audits only the requests of the server. Returns the flags. */
export function serverAuditFlags(folder: string): string[] {
  const policy = join(folder, 'audit-policy.json');
  const rules = [{ level: 'Metadata', users: [`system:serviceaccount:${namespace}:${release}`] }, { level: 'None' }];
  const omitStages = ['RequestReceived', 'ResponseStarted'];
  writeFileSync(policy, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages, rules }));
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${auditLog(folder)}`];
}

/** Returns whether the server has sent a request to kube-apiserver with the token of this id (jti). */
export const hasUsedToken = (folder: string, id: string): boolean =>
  existsSync(auditLog(folder)) && readFileSync(auditLog(folder), 'utf8').includes(`"JTI=${id}"`);
