/** What must hold whatever a test file did: the replicas run, no answer was a 500, and no log holds a secret. */
import { readFileSync } from 'node:fs';
import { afterAll, jest } from '@jest/globals';
import { readLog, type LogLine } from './configure.ts';
import { lab } from './lab.ts';
import { remembered } from './secrets.ts';
import { replicaProcesses, serverLogs } from './servers.ts';

// Waiting is bounded by what is waited for; this only ends a test that hangs.
jest.setTimeout(150_000);

/** What a server never says unless there is a bug. */
const isBug = ({ message, status, path }: LogLine): boolean =>
  (status === 500 && !fromKubeApiserver.test(String(path))) ||
  message === 'a rejected promise was not handled' ||
  message === 'an error was not caught';

/** To this it answers 500 itself, and through the gateway too. */
const fromKubeApiserver = /^\/api\/v1\/nodes.*[?&]resourceVersion=x(&|$)/;

afterAll(() => {
  const problems: string[] = [];
  if (replicaProcesses().includes(undefined)) problems.push('a replica has ended');
  const secrets = remembered();
  for (const file of serverLogs(lab().dir)) {
    const text = readFileSync(file, 'utf8');
    for (const secret of secrets)
      if (text.includes(secret)) {
        const at = text.indexOf(secret);
        problems.push(`${file} holds ${secret}: …${text.slice(Math.max(0, at - 300), at + 300)}…`);
      }
    for (const line of readLog(file)) if (isBug(line)) problems.push(`${file}: ${JSON.stringify(line)}`);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
});
