/**
 * A process tree in its own namespaces, whose processes, mounts and routes disappear with it and never affect the
 * machine.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tool } from './packages.ts';

export interface Tree {
  /** Settles with the exit code when all processes have ended; null if the tree was killed. */
  readonly ended: Promise<number | null>;
  kill(): void;
}

/** Runs a script with this Node in new pid, mount and network namespaces; the network is empty. */
export async function startTree(script: string, args: readonly string[]): Promise<Tree> {
  // The tree also ends if this process is killed.
  const leash = ['--pdeathsig', 'KILL', '--'];
  const unshare = [tool('unshare'), '--pid', '--mount', '--net', '--fork', '--kill-child', '--mount-proc'];
  // The first process of a pid namespace inherits its orphans; a waiting shell reaps them.
  const first = ['sh', '-c', '"$@" 2>&3 3>&- & wait $!', 'sh', process.execPath, script, ...args];
  const child = spawn(tool('setpriv'), [...leash, ...unshare, ...first], {
    stdio: ['ignore', 'inherit', 'pipe', process.stderr.fd],
    // Starts a new session, so that Ctrl-C does not reach the tree.
    detached: true,
  });
  let killed = false;
  // Ignore unshare's message about being killed.
  child.stderr?.on('data', (text: Buffer) => killed || process.stderr.write(text));
  await once(child, 'spawn');
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  return {
    ended,
    kill() {
      killed = true;
      kill(child.pid ?? 0);
    },
  };
}

/** Kills the first process of the pid namespace. The kernel then kills all its other processes, and unshare exits. */
function kill(unshare: number): void {
  try {
    const first = Number(readFileSync(`/proc/${unshare}/task/${unshare}/children`, 'utf8').split(' ')[0]);
    process.kill(first > 0 ? first : unshare, 'SIGKILL');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ESRCH') throw error; // The process has already ended.
  }
}
