/** Finds log lines that a server writes only because of a bug, and secrets in logs. */
import { lab } from './lab.ts';
import { readLog, readLogText, type LogLine } from './log.ts';
import { remembered } from './secrets.ts';
import { serverLogs } from './servers.ts';

const isBug = ({ message, status, path }: LogLine): boolean =>
  (status === 500 && !fromKubeApiserver.test(String(path))) ||
  message === 'unhandled promise rejection' ||
  message === 'uncaught exception';

// kube-apiserver returns 500 for these requests, and the gateway forwards the response.
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

/** Returns the problems in the logs of all servers since the test file started. */
export function problemsInLogs(): string[] {
  const secrets = remembered();
  return serverLogs(lab().dir).flatMap((file) => problemsIn(file, secrets));
}
