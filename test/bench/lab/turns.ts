/**
 * Measures, inside the server, the turns of its event loop in CPU time without garbage collection. The message
 * 'longest' requests the longest turn since the previous message, in milliseconds. A turn counts as its duration or the
 * CPU time of the process, whichever is less. The CPU time of the thread is not used, because its resolution is only 4
 * ms.
 */
import { PerformanceObserver } from 'node:perf_hooks';

interface Turn {
  readonly from: number;
  readonly to: number;
  readonly cpu: number;
}

/** Minimum duration of a recorded turn, in milliseconds. */
const minTurn = 0.5;
let turns: Turn[] = [];
let collections: { readonly from: number; readonly to: number }[] = [];

new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries())
    collections.push({ from: startTime, to: startTime + duration });
}).observe({ entryTypes: ['gc'] });

const cpuNow = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

let from = performance.now();
let cpu = cpuNow();
/** Records a turn of the event loop, and schedules itself for the next turn. The loop therefore never sleeps. */
function turn(): void {
  const to = performance.now();
  const used = cpuNow();
  const spent = Math.min(used - cpu, to - from);
  if (spent > minTurn) turns.push({ from, to, cpu: spent });
  from = to;
  cpu = used;
  setImmediate(turn);
}
setImmediate(turn);

process.on('message', (message) => {
  if (message !== 'longest') return;
  // A garbage collection is reported one turn later.
  setTimeout(() => {
    const own = turns.map((one) => {
      const inside = collections.filter((collection) => collection.from >= one.from && collection.to <= one.to);
      return one.cpu - inside.reduce((sum, collection) => sum + collection.to - collection.from, 0);
    });
    turns = [];
    collections = [];
    process.send?.({ longest: Math.max(0, ...own) });
  }, 20);
});
