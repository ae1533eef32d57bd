/** Process in which one of several records throws. */
import { allRecorded, recordSoon } from '../../src/http/records.ts';

process.on('uncaughtException', () => console.log('uncaught'));
recordSoon(() => console.log('1'));
recordSoon(() => {
  throw new Error('a bug');
});
recordSoon(() => console.log('3'));
await allRecorded();
recordSoon(() => console.log('later'));
