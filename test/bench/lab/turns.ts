/**
 * Loaded into the server: measures the turns of its event loop in CPU time, garbage collection apart. On the message 'longest' it sends
 * the longest turn since the message before, in milliseconds, and starts again. The CPU time of one thread is known to 4 ms only, so a
 * turn counts as its time or as the CPU time of the process, whichever is less: neither is less than what the thread used.
 */
import { PerformanceObserver } from 'node:perf_hooks';

interface Turn {
  readonly from: number;
  readonly to: number;
  readonly cpu: number;
}

/** Shorter ones are not kept. */
const least = 0.5;
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
/** Called once a turn, also when nothing happens: the loop never sleeps. */
function turn(): void {
  const to = performance.now();
  const used = cpuNow();
  const spent = Math.min(used - cpu, to - from);
  if (spent > least) turns.push({ from, to, cpu: spent });
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
