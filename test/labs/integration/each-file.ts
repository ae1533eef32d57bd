/**
 * Hooks of every test file. Before the file, the lab must be healthy. After the file, the replicas must be running, and
 * no log is allowed to report a bug or to contain a secret.
 */
import { afterAll, jest } from '@jest/globals';
import { assertHealthy } from './health.ts';
import { advanceLogs } from './log.ts';
import { problemsInLogs } from './log-problems.ts';
import { replicaProcesses } from './servers.ts';

// This timeout only ends a test that hangs. Each wait of a test has its own timeout.
jest.setTimeout(150_000);

await assertHealthy();

afterAll(() => {
  const problems = problemsInLogs();
  advanceLogs();
  if (replicaProcesses().includes(undefined)) problems.push('a replica has ended');
  if (problems.length > 0) throw new Error(problems.join('\n'));
});
