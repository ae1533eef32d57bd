/** A process tree in namespaces of its own: what it starts, mounts and routes is gone with it and was never the machine's. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tool } from './packages.ts';

export interface Tree {
  /** Settles when every process of it has ended; null if it was killed. */
  readonly ended: Promise<number | null>;
  kill(): void;
}

/** Runs a script with our Node in new pid, mount and network namespaces; the network is empty. */
export async function startTree(script: string, args: readonly string[]): Promise<Tree> {
  // Killed ourselves, we leave nothing behind either.
  const leash = ['--pdeathsig', 'KILL', '--'];
  const unshare = [tool('unshare'), '--pid', '--mount', '--net', '--fork', '--kill-child', '--mount-proc'];
  // The first process of a pid namespace inherits the orphans in it; a shell that waits buries them.
  const first = ['sh', '-c', '"$@" 2>&3 3>&- & wait $!', 'sh', process.execPath, script, ...args];
  const child = spawn(tool('setpriv'), [...leash, ...unshare, ...first], {
    stdio: ['ignore', 'inherit', 'pipe', process.stderr.fd],
    // A session of its own: Ctrl-C shall reach us alone.
    detached: true,
  });
  let killed = false;
  // What unshare has to say about being killed is nobody's concern.
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

/** When its first process is killed, the kernel ends the rest of a pid namespace, and only then unshare is told. */
function kill(unshare: number): void {
  try {
    const first = Number(readFileSync(`/proc/${unshare}/task/${unshare}/children`, 'utf8').split(' ')[0]);
    process.kill(first > 0 ? first : unshare, 'SIGKILL');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ESRCH') throw error; // It has ended meanwhile.
  }
}
