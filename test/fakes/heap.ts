import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Returns the bytes of reachable objects on the heap. */
export function heapUsed(): number {
  // The first collection completes a marking in progress, which keeps objects that died after it started.
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
