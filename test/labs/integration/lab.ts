/** What the setup started, as every test file finds it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Ports {
  readonly http: number;
  readonly https: number;
  readonly aggregated: number;
}

/** Where something is that not every machine has, or why it is not there. */
export type Found = { readonly path: string } | { readonly why: string };

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
  /** Of another version than the cluster's: Debian's, years older, unless OTHER_KUBECTL names one. */
  readonly otherKubectl: Found;
  /** The programs of test/clients/go. */
  readonly go: { readonly informers: string; readonly cases: string; readonly oauth: string };
  /** What the programs of test/clients/python import. */
  readonly pythonPackages: Found;
  /** The browser of the tests of pages. */
  readonly chromium: Found;
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

/** Throws where it cannot be had: a test that needs it fails and says so. */
export function demand(found: Found): string {
  if ('why' in found) throw new Error(found.why);
  return found.path;
}

let known: Lab | undefined;

export function lab(): Lab {
  known ??= readLab();
  return known;
}
