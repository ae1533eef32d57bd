/** Runs `platform-apiserver doctor` for the lab. */
import { platformApiserver } from './cli.ts';
import { lab } from './lab.ts';

interface Finding {
  readonly status: string;
  readonly message: string;
  readonly command?: string;
}

export interface Report {
  readonly summary: Readonly<Record<string, number>>;
  readonly checks: readonly { readonly name: string; readonly status: string; readonly findings: readonly Finding[] }[];
}

export interface Diagnosis extends Report {
  readonly code: number;
  /** Returns the status of a check. */
  readonly status: (name: string) => string;
  /** Returns the findings of all checks with this status, each with the name of its check. */
  readonly findings: (status: string) => (Finding & { readonly check: string })[];
}

/** Runs `platform-apiserver doctor` with a kubeconfig. Default: the kubeconfig of the administrator. */
export async function diagnose(kubeconfig = lab().kubeconfig, ...flags: readonly string[]): Promise<Diagnosis> {
  const args = ['doctor', `--kubeconfig=${kubeconfig}`, '--output=json', ...flags];
  const { code, stdout, stderr } = await platformApiserver(args);
  if (code > 1) throw new Error(`the doctor exited with ${code}: ${stderr}`);
  const report = JSON.parse(stdout) as Report;
  return {
    ...report,
    code,
    status: (name) => report.checks.find((check) => check.name === name)?.status ?? 'missing',
    findings: (status) =>
      report.checks.flatMap(({ name, findings }) =>
        findings.filter((one) => one.status === status).map((one) => ({ check: name, ...one })),
      ),
  };
}
