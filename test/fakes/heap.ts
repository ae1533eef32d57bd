import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes of the heap that are still referred to. */
export function heapUsed(): number {
  // The first ends a marking that may be under way, and keeps what has died since that began.
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
