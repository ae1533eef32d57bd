/** Resource usage of processes as reported by Linux. */
import { readFileSync, writeFileSync } from 'node:fs';

/** A tick of utime and stime is a hundredth of a second on every machine (USER_HZ). */
const millisecondsPerTick = 10;

/** Returns the total CPU time of the processes in user and kernel mode, in milliseconds. */
export function cpuTime(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks * millisecondsPerTick;
}

export interface Memory {
  /** Resident memory in megabytes (10^6 bytes). */
  readonly rss: number;
  /** Peak of the resident memory since the call of `resetPeaks`. */
  readonly peak: number;
}

export function memory(pids: readonly number[]): Memory {
  const sum = (field: string): number => {
    let kibibytes = 0;
    for (const pid of pids)
      kibibytes += Number(
        new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1],
      );
    return (kibibytes * 1024) / 1e6;
  };
  return { rss: sum('VmRSS'), peak: sum('VmHWM') };
}

export function resetPeaks(pids: readonly number[]): void {
  for (const pid of pids) writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Returns a process and its children, such as nginx's workers. */
export function withChildren(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  return [pid, ...(children === '' ? [] : children.split(' ').map(Number))];
}
