/** Checks of the doctor, and the order in which they run. */
import type { Context } from './context.ts';

/** `not checked`: the precondition of the check failed, or the caller of the doctor lacks a right. */
export type Status = 'ok' | 'warning' | 'failed' | 'not checked';

export interface Finding {
  readonly status: Status;
  /** One sentence about an object, without secrets. */
  readonly message: string;
  /** Command that fixes the problem or shows more. */
  readonly command?: string;
}

export interface Check {
  readonly name: string;
  /** Names of earlier checks without which this check would only repeat their failure. */
  readonly needs: readonly string[];
  /** Returns at least one finding. Throws Stop with the last finding, such as a missing right. */
  run(context: Context): AsyncIterable<Finding>;
}

export interface Result {
  readonly name: string;
  readonly findings: readonly Finding[];
}

const finding = (status: Status, message: string, command?: string): Finding =>
  command === undefined ? { status, message } : { status, message, command };
export const ok = (message: string): Finding => finding('ok', message);
export const warning = (message: string, command?: string): Finding => finding('warning', message, command);
export const failed = (message: string, command?: string): Finding => finding('failed', message, command);
export const notChecked = (message: string, command?: string): Finding => finding('not checked', message, command);

/** Ends a check with a last finding. */
export class Stop extends Error {
  readonly finding: Finding;

  constructor(last: Finding) {
    super(last.message);
    this.finding = last;
  }
}

/**
 * Runs the checks in order, and returns each result as its check ends. Skips each check that depends, directly or
 * through other checks, on a failed check.
 */
export async function* runChecks(checks: readonly Check[], context: Context): AsyncGenerator<Result> {
  const blocked = new Set<string>();
  for (const check of checks) {
    const blocker = check.needs.find((name) => blocked.has(name));
    const findings =
      blocker === undefined ? await findingsOf(check, context) : [notChecked(`needs the check "${blocker}" to pass`)];
    if (blocker !== undefined || findings.some(({ status }) => status === 'failed')) blocked.add(check.name);
    yield { name: check.name, findings };
  }
}

async function findingsOf(check: Check, context: Context): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    for await (const one of check.run(context)) findings.push(one);
  } catch (error) {
    findings.push(error instanceof Stop ? error.finding : failed((error as Error).message));
  }
  return findings;
}
