/** Describes the processes and files that the setup has created for all test files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Ports {
  readonly http: number;
  readonly https: number;
  readonly aggregated: number;
}

/** Location of a program that is not on every machine, or the reason why it is missing. */
export type Found = { readonly path: string } | { readonly reason: string };

export interface Lab {
  /** Folder with the state of the control plane and all logs. The folder is removed at the end of the run. */
  readonly dir: string;
  /** Kubeconfig of the administrator, in group system:masters. */
  readonly kubeconfig: string;
  /** Kubeconfig of the chart's ServiceAccount. */
  readonly serverKubeconfig: string;
  /** Address at which the aggregated ports listen. */
  readonly address: string;
  /** CA of the replicas in PEM, from the ConfigMap platform-apiserver-ca. */
  readonly authority: string;
  /** Path of a file with the CA of the replicas. */
  readonly authorityFile: string;
  readonly adminPassword: string;
  readonly kubectl: string;
  /**
   * kubectl in a version other than the cluster's. The default is the kubectl of Debian, which is years older.
   * OTHER_KUBECTL names another program.
   */
  readonly otherKubectl: Found;
  /** Paths of the built programs of test/clients/go. */
  readonly go: Readonly<
    Record<'informers' | 'cases' | 'oauth' | 'controller' | 'replay' | 'reviewer' | 'collector', string>
  >;
  /** Packages that the programs of test/clients/python import. */
  readonly pythonPackages: Found;
  /** Browser for the tests of HTML pages. */
  readonly chromium: Found;
  /** Ports of the two servers behind the chart's Service, which run for all test files. */
  readonly replicas: readonly [Ports, Ports];
}

/** Environment variable that the setup sets for the test files. */
export const labVariable = 'PLATFORM_INTEGRATION_LAB';

export const labFile = (dir: string): string => join(dir, 'lab.json');

function readLab(): Lab {
  const dir = process.env[labVariable];
  if (dir === undefined) throw new Error('integration tests must be run by jest, whose setup starts the lab');
  return JSON.parse(readFileSync(labFile(dir), 'utf8')) as Lab;
}

/** Returns the path, or throws if the program is missing, so that the test fails with the reason. */
export function foundPath(found: Found): string {
  if ('reason' in found) throw new Error(found.reason);
  return found.path;
}

let known: Lab | undefined;

export function lab(): Lab {
  known ??= readLab();
  return known;
}
