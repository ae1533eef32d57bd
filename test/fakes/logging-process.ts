/**
 * Process that writes log lines like the server, including its own uncaught exceptions. The process starts to write
 * when a message reports that its standard output is closed.
 */
import { createLogger } from '../../src/runtime/logger.ts';

let uncaught = 0;
const log = createLogger();
process.on('uncaughtException', (error) => {
  uncaught += 1;
  log.error('uncaught exception', { error });
});
process.once('message', () => {
  log.error('first');
  // The callback is called after both writes. Errors of the writes are emitted as an event after the callback.
  process.stdout.write('', () => {
    log.error('second');
    process.stdout.write('', () => setImmediate(() => process.send?.(uncaught, () => process.disconnect())));
  });
});
process.send?.('ready');
