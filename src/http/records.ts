/**
 * Records of requests: metrics, log lines and audit events. They are made together for the requests of a few
 * milliseconds, because one at a time takes about four times as much CPU time: each time, the code that served the
 * request has displaced the code and data of the records from the CPU's caches.
 */

/** Milliseconds after which the records are made. */
const delay = 5;
/** Number of waiting records from which on records are made at once. */
const maxWaiting = 200;
/** Milliseconds after which other tasks get a turn. */
const turn = 1;

const waiting: (() => void)[] = [];
let isScheduled = false;
let isAttached = false;

/** Calls `record` within a few milliseconds, and in any case before the process exits. */
export function recordSoon(record: () => void): void {
  waiting.push(record);
  if (!isAttached) {
    // This listener must precede the one that flushes standard output.
    process.prependOnceListener('exit', () => makeRecords(Infinity));
    isAttached = true;
  }
  if (!isScheduled) setTimeout(next, delay);
  isScheduled = true;
  if (waiting.length >= maxWaiting) makeRecords(turn);
}

/** Resolves when the records of all requests that have ended so far are made. */
export const allRecorded = (): Promise<void> => new Promise(recordSoon);

function next(): void {
  isScheduled = false;
  try {
    makeRecords(turn);
  } finally {
    if (waiting.length > 0 && !isScheduled) {
      isScheduled = true;
      setImmediate(next);
    }
  }
}

function makeRecords(limit: number): void {
  const end = performance.now() + limit;
  // Each record is removed first, because it may throw or add another record.
  do waiting.shift()?.();
  while (waiting.length > 0 && performance.now() < end);
}
