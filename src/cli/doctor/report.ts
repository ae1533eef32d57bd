/** The results of all checks, for people and as JSON. */
import { terminalSafe } from '../credential/responses.ts';
import type { Result, Status } from './check.ts';

/** All statuses, most important first. */
const statuses = ['failed', 'warning', 'not checked', 'ok'] as const satisfies readonly Status[];

/** Returns the most important status of the findings of a check. */
const statusOf = ({ findings }: Result): Status =>
  statuses.find((status) => findings.some((one) => one.status === status)) ?? 'ok';

/** Returns the number of checks by status. */
const summaryOf = (results: readonly Result[]): Readonly<Record<Status, number>> => {
  const count = (status: Status): number => results.filter((result) => statusOf(result) === status).length;
  return { failed: count('failed'), warning: count('warning'), 'not checked': count('not checked'), ok: count('ok') };
};

export const hasFailed = (results: readonly Result[]): boolean => summaryOf(results).failed > 0;

/** Returns one line for each finding, and its command on the next line. */
export const formatResult = ({ name, findings }: Result): string =>
  findings
    .flatMap(({ status, message, command }) => [
      `${status.padEnd(13)}${terminalSafe(`${name}: ${message}`)}`,
      ...(command === undefined ? [] : [`${' '.repeat(13)}$ ${terminalSafe(command)}`]),
    ])
    .join('\n');

/** Returns the number of checks by status. */
export function formatSummary(results: readonly Result[]): string {
  const summary = summaryOf(results);
  return statuses.map((status) => `${summary[status]} ${status}`).join(', ');
}

export interface Subject {
  /** Version of this program. */
  readonly version: string;
  /** Time of the checks in RFC 3339 format. */
  readonly time: string;
  readonly namespace: string;
  readonly service: string;
}

/** Returns the JSON output that docs/reference/cli.md describes. */
export const toJSON = (results: readonly Result[], subject: Subject): object => ({
  ...subject,
  summary: summaryOf(results),
  checks: results.map((result) => ({ name: result.name, status: statusOf(result), findings: result.findings })),
});
