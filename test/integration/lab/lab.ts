/** What the setup started, as every test file finds it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Ports {
  readonly http: number;
  readonly https: number;
  readonly aggregated: number;
}

export interface Lab {
  /** State of the control plane, and logs; removed at the end. */
  readonly dir: string;
  /** Of the administrator, in group system:masters. */
  readonly kubeconfig: string;
  /** Of the chart's own ServiceAccount. */
  readonly serverKubeconfig: string;
  /** Where the aggregated ports are opened. */
  readonly address: string;
  /** PEM, from the ConfigMap platform-apiserver-ca. */
  readonly authority: string;
  /** The same in a file. */
  readonly authorityFile: string;
  readonly adminPassword: string;
  readonly kubectl: string;
  /** Debian's, years older; or why there is none. */
  readonly oldKubectl: { readonly path: string } | { readonly why: string };
  /** The client-go program of test/clients/go. */
  readonly informers: string;
  /** The two servers that run for all files, behind the chart's Service. */
  readonly replicas: readonly [Ports, Ports];
}

/** Set by the setup for those who come after it. */
export const labVariable = 'PLATFORM_INTEGRATION_LAB';

export const labFile = (dir: string): string => join(dir, 'lab.json');

function readLab(): Lab {
  const dir = process.env[labVariable];
  if (dir === undefined) throw new Error('integration tests are run by jest, whose setup starts what they need');
  return JSON.parse(readFileSync(labFile(dir), 'utf8')) as Lab;
}

let known: Lab | undefined;

export function lab(): Lab {
  known ??= readLab();
  return known;
}
