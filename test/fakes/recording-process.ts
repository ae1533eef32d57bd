/** Process that records a request as its last action, in the log and in the audit log. */
import { standardOutputSink } from '../../src/audit/log-sink.ts';
import { recordSoon } from '../../src/http/records.ts';
import { createLogger } from '../../src/runtime/logger.ts';

const log = createLogger();
log.info('started');
const sink = standardOutputSink();
recordSoon(() => {
  log.info('recorded');
  sink.write('audited');
});
process.exit();
