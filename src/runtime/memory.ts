import { totalmem } from 'node:os';

/** Returns the memory limit of the container in bytes; 0 if there is no limit below the memory of the machine. */
export function containerMemoryLimit(constrained = process.constrainedMemory(), total = totalmem()): number {
  // Node.js reports 0 or a huge number if there is no limit.
  return constrained < total ? constrained : 0;
}
