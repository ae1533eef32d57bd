import { Writable } from 'node:stream';
import winston from 'winston';
import { createLogger, type Logger } from '../../src/runtime/logger.ts';

/** Returns a logger with the production format that writes to memory, and the written lines. */
export function logOfLines(): { readonly log: Logger; readonly lines: () => string[] } {
  let text = '';
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      text += chunk.toString('utf8');
      done();
    },
  });
  const log = createLogger().clear().add(new winston.transports.Stream({ stream }));
  return { log, lines: () => text.split('\n').filter((line) => line !== '') };
}
