/** Cases are lists of steps; a step is a sentence and the code that verifies it. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { seconds } from '../../hack/cluster/progress.ts';
import type { Cluster } from './cluster.ts';
import { namespace, release } from './release.ts';

export interface Step {
  readonly description: string;
  /** Throws on failure. Returned text is printed with the step. */
  readonly run: () => Promise<string | void>;
}

export interface Case {
  readonly title: string;
  readonly steps: (cluster: Cluster) => readonly Step[];
}

export const step = (description: string, run: Step['run']): Step => ({ description, run });

/** Milliseconds after which a step counts as stuck. */
const timeout = 300_000;

type Outcome = 'passed' | 'failed' | 'timed out' | 'not run';

/**
 * Runs the cases. Each step requires the previous steps of its case, and every case requires the first case. A step
 * that times out is the last, because its work continues and would disturb the next steps. Returns false if any step
 * failed.
 */
export async function runCases(cases: readonly Case[], cluster: Cluster): Promise<boolean> {
  let passed = 0;
  let failed = 0;
  let canRunCases = true;
  for (const [index, { title, steps }] of cases.entries()) {
    console.log(`\n${title}`);
    let canContinue: boolean = canRunCases;
    for (const one of steps(cluster)) {
      const outcome: Outcome = canContinue ? await runStep(one, cluster) : 'not run';
      if (outcome === 'not run') console.log(`  not run           ${one.description}`);
      canContinue = outcome === 'passed';
      if (canContinue) passed++;
      else failed++;
      if (outcome === 'timed out' || (index === 0 && !canContinue)) canRunCases = false;
    }
  }
  console.log(`\n${passed} passed, ${failed} failed`);
  return failed === 0;
}

async function runStep({ description, run }: Step, cluster: Cluster): Promise<Outcome> {
  const begin = performance.now();
  const time = (): string => seconds(begin).padStart(8);
  const timer = new AbortController();
  let outcome: Outcome = 'failed';
  try {
    const note = await Promise.race([
      run(),
      sleep(timeout, undefined, { signal: timer.signal }).then(() => {
        outcome = 'timed out';
        throw new Error(`timed out after ${timeout / 1000} s`);
      }),
    ]);
    console.log(`  passed ${time()}   ${description}${note === undefined ? '' : `: ${note}`}`);
    return 'passed';
  } catch (error) {
    console.log(`  FAILED ${time()}   ${description}`);
    console.log(indent(error instanceof Error ? error.message : String(error)));
    await diagnose(cluster);
    return outcome;
  } finally {
    timer.abort();
  }
}

/** Prints the logs of the servers before a later step removes their pods. */
async function diagnose(cluster: Cluster): Promise<void> {
  const show = async (title: string, words: string): Promise<void> => {
    const text = await cluster.kubectl(`--namespace ${namespace} ${words}`).catch((error: Error) => error.message);
    console.log(indent(`${title}:\n${indent(text.trimEnd())}`));
  };
  await show('Pods', 'get pods --output wide');
  await show('Events', 'get events --sort-by .metadata.creationTimestamp');
  await show('The ends of their logs', `logs --selector app.kubernetes.io/name=${release} --prefix --tail 6`);
  cpSync(join(cluster.folder, 'var-log/pods'), join(cluster.folder, `pods-${Date.now()}`), { recursive: true });
  await cluster.check().catch((error: Error) => console.log(indent(error.message)));
}

const indent = (text: string): string => text.replaceAll(/^/gm, '    ');
