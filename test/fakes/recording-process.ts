/** Process that records a request as its last action. */
import { recordSoon } from '../../src/http/records.ts';
import { createLogger } from '../../src/runtime/logger.ts';

const log = createLogger();
log.info('started');
recordSoon(() => void log.info('recorded'));
process.exit();
