/** Logs like the server does, including its own errors, once it gets the message that nothing reads its standard output. */
import { createLogger } from '../../src/runtime/logger.ts';

let uncaught = 0;
const log = createLogger();
process.on('uncaughtException', (error) => {
  uncaught += 1;
  log.error('uncaught exception', { error });
});
process.once('message', () => {
  log.error('first');
  // The callback reports the outcome of both writes, and the event follows it.
  process.stdout.write('', () => {
    log.error('second');
    process.stdout.write('', () => setImmediate(() => process.send?.(uncaught, () => process.disconnect())));
  });
});
process.send?.('ready');
