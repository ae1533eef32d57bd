/** Logs like the server does, also what goes wrong, once it is told that nobody reads its standard output any more. */
import { createLogger } from '../../src/runtime/logger.ts';

let uncaught = 0;
const log = createLogger();
process.on('uncaughtException', (error) => {
  uncaught += 1;
  log.error('an error was not caught', { error });
});
process.once('message', () => {
  log.error('first');
  // The callback comes with the outcome of both writes, and the event after it.
  process.stdout.write('', () => {
    log.error('second');
    process.stdout.write('', () => setImmediate(() => process.send?.(uncaught, () => process.disconnect())));
  });
});
process.send?.('ready');
