/**
 * Audit log of kube-apiserver in the state folder of the lab. kube-apiserver records only the requests for one
 * namespace.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';

export const auditedNamespace = 'through-the-gateway';

/** Returns the audit flags of kube-apiserver. */
export function auditFlags(dir: string): string[] {
  const policy = join(dir, 'audit-policy.yaml');
  const rules = [{ level: 'Metadata', namespaces: [auditedNamespace] }, { level: 'None' }];
  writeFileSync(
    policy,
    stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules }),
  );
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(dir, 'audit.log')}`];
}
