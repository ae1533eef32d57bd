/** Cases are lists of steps; a step is a sentence and what makes it true. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { seconds } from '../../hack/cluster/progress.ts';
import type { Cluster } from './cluster.ts';
import { namespace, release } from './release.ts';

export interface Step {
  readonly says: string;
  /** Throws if it is not so. A text that is answered is printed with it. */
  readonly run: () => Promise<string | void>;
}

export interface Case {
  readonly title: string;
  readonly steps: (cluster: Cluster) => readonly Step[];
}

export const step = (says: string, run: Step['run']): Step => ({ says, run });

const patience = 180_000;

/** Each step needs those before it in its case, and every case needs the first. False if anything failed. */
export async function runCases(cases: readonly Case[], cluster: Cluster): Promise<boolean> {
  let passed = 0;
  let failed = 0;
  let installed = true;
  for (const [index, { title, steps }] of cases.entries()) {
    console.log(`\n${title}`);
    let goesOn: boolean = installed;
    for (const one of steps(cluster)) {
      const ok: boolean = goesOn && (await runStep(one, cluster));
      if (!goesOn) console.log(`  not run           ${one.says}`);
      goesOn = ok;
      if (ok) passed++;
      else failed++;
    }
    if (index === 0) installed = goesOn;
  }
  console.log(`\n${passed} passed, ${failed} failed`);
  return failed === 0;
}

async function runStep({ says, run }: Step, cluster: Cluster): Promise<boolean> {
  const begin = performance.now();
  const time = (): string => seconds(begin).padStart(8);
  const tooLong = new AbortController();
  try {
    const note = await Promise.race([
      run(),
      sleep(patience, undefined, { signal: tooLong.signal }).then(() => {
        throw new Error(`it takes more than ${patience / 1000} s`);
      }),
    ]);
    console.log(`  passed ${time()}   ${says}${note === undefined ? '' : `: ${note}`}`);
    return true;
  } catch (error) {
    console.log(`  FAILED ${time()}   ${says}`);
    console.log(indent(error instanceof Error ? error.message : String(error)));
    await diagnose(cluster);
    return false;
  } finally {
    tooLong.abort();
  }
}

/** What the servers said, before a later step takes their pods and their logs away. */
async function diagnose(cluster: Cluster): Promise<void> {
  const look = async (title: string, words: string): Promise<void> => {
    const text = await cluster.kubectl(`--namespace ${namespace} ${words}`).catch((error: Error) => error.message);
    console.log(indent(`${title}:\n${indent(text.trimEnd())}`));
  };
  await look('Pods', 'get pods --output wide');
  await look('Events', 'get events --sort-by .metadata.creationTimestamp');
  await look('The ends of their logs', `logs --selector app.kubernetes.io/name=${release} --prefix --tail 6`);
  cpSync(join(cluster.folder, 'var-log/pods'), join(cluster.folder, `pods-${Date.now()}`), { recursive: true });
  await cluster.check().catch((error: Error) => console.log(indent(error.message)));
}

const indent = (text: string): string => text.replaceAll(/^/gm, '    ');
