/**
 * Records of completed requests: metrics, log lines and audit events. They are made together for the requests of a few
 * milliseconds, because one at a time takes about four times as much CPU time: each time, the code that served the
 * request has displaced the code and data of the records from the CPU's caches.
 */

/** Milliseconds after which the records are made. */
const delay = 5;
/** Maximum number of waiting records. */
const maxWaiting = 200;
/** Milliseconds after which other tasks get a turn. An audit event with bodies can take several milliseconds. */
const turn = 1;

let waiting: (() => void)[] = [];
let isScheduled = false;
let isAttached = false;

/** Calls `record`, which must not throw, within a few milliseconds, and in any case before the process exits. */
export function recordSoon(record: () => void): void {
  waiting.push(record);
  if (!isAttached) {
    // This listener must precede the one that flushes standard output.
    process.prependOnceListener('exit', () => makeRecords(Infinity));
    isAttached = true;
  }
  if (waiting.length >= maxWaiting) makeRecords(turn);
  else if (!isScheduled) setTimeout(next, delay);
  isScheduled = true;
}

/** Resolves when the records of all requests that have ended so far are made. */
export const allRecorded = (): Promise<void> => new Promise(recordSoon);

function next(): void {
  isScheduled = false;
  makeRecords(turn);
  if (waiting.length === 0) return;
  isScheduled = true;
  setImmediate(next);
}

function makeRecords(limit: number): void {
  const end = performance.now() + limit;
  let made = 0;
  do waiting[made++]?.();
  while (made < waiting.length && performance.now() < end);
  waiting = waiting.slice(made);
}
