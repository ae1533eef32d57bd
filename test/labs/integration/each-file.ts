/**
 * Hooks of every test file: the lab must be healthy before it; afterwards the replicas must run, and no log may report
 * a bug or contain a secret.
 */
import { afterAll, jest } from '@jest/globals';
import { assertHealthy } from './health.ts';
import { advanceLogs } from './log.ts';
import { problemsInLogs } from './log-problems.ts';
import { replicaProcesses } from './servers.ts';

// Each wait has its own limit; this one only ends a test that hangs.
jest.setTimeout(150_000);

await assertHealthy();

afterAll(() => {
  const problems = problemsInLogs();
  advanceLogs();
  if (replicaProcesses().includes(undefined)) problems.push('a replica has ended');
  if (problems.length > 0) throw new Error(problems.join('\n'));
});
