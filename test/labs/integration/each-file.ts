/**
 * Hooks of every test file: the lab must be healthy before it; afterwards the replicas must run, and no log may report
 * a bug or contain a secret.
 */
import { afterAll, jest } from '@jest/globals';
import { assertHealthy } from './health.ts';
import { lab } from './lab.ts';
import { advanceLogs, readLog, readLogText, type LogLine } from './log.ts';
import { remembered } from './secrets.ts';
import { replicaProcesses, serverLogs } from './servers.ts';

// Each wait has its own limit; this one only ends a test that hangs.
jest.setTimeout(150_000);

await assertHealthy();

/** Reports if a server logs this line only because of a bug. */
const isBug = ({ message, status, path }: LogLine): boolean =>
  (status === 500 && !fromKubeApiserver.test(String(path))) ||
  message === 'unhandled promise rejection' ||
  message === 'uncaught exception';

// kube-apiserver returns 500 for this request, and the gateway passes it on.
const fromKubeApiserver = /^\/api\/v1\/nodes.*[?&]resourceVersion=x(&|$)/;

function problemsIn(file: string, secrets: readonly string[]): string[] {
  const text = readLogText(file);
  const leaks = secrets.flatMap((secret) => {
    const at = text.indexOf(secret);
    return at === -1 ? [] : [`${file} holds ${secret}: …${text.slice(Math.max(0, at - 300), at + 300)}…`];
  });
  const bugs = readLog(file).filter(isBug);
  return [...leaks, ...bugs.map((line) => `${file}: ${JSON.stringify(line)}`)];
}

afterAll(() => {
  const secrets = remembered();
  const problems = serverLogs(lab().dir).flatMap((file) => problemsIn(file, secrets));
  advanceLogs();
  if (replicaProcesses().includes(undefined)) problems.push('a replica has ended');
  if (problems.length > 0) throw new Error(problems.join('\n'));
});
