import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Returns the size of all reachable objects on the heap in bytes. */
export function heapUsed(): number {
  // The first garbage collection may complete an earlier marking, which keeps objects that became unreachable after its
  // start.
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
