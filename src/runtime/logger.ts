import winston from 'winston';
import Transport from 'winston-transport';
import { isSecret, mayHaveCredentials, redactedJSON, redactText } from './redaction.ts';
import { rfc3339 } from './time.ts';
import { currentSpan } from './tracing.ts';

/** Structured log: one JSON object per line on standard output. */
export type Logger = winston.Logger;

function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (value instanceof Error) {
    const { message, stack, cause } = isQuoting(value) ? withoutText(value) : value;
    return redact({ message, stack, ...(cause === undefined ? {} : { cause }) }, depth + 1);
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth > 6) return '[nested too deep]';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, isSecret(key) ? '[redacted]' : redact(item, depth + 1)]),
  );
}

/**
 * Returns true for a SyntaxError: JSON.parse quotes the text that it cannot parse, which may be a Secret or a token.
 * The error is compared by name, because each realm has its own class.
 */
const isQuoting = ({ name }: Error): boolean => name === 'SyntaxError';

/** Replaces the message of the error with the position of the syntax error. */
function withoutText({ message, stack = '', cause }: Error): Pick<Error, 'message' | 'stack' | 'cause'> {
  const shown = `invalid syntax${/ at position \d+/.exec(message)?.[0] ?? ''}`;
  return { message: shown, stack: stack.replace(message, () => shown), cause };
}

const redaction = winston.format((entry) => {
  for (const key of Object.keys(entry)) entry[key] = isSecret(key) ? '[redacted]' : redact(entry[key]);
  return entry;
});

const stamp = winston.format((entry) => {
  const span = currentSpan();
  return Object.assign(entry, { time: rfc3339(Date.now()) }, span && { trace_id: span.traceID });
});

const LEVEL = Symbol.for('level');
const MESSAGE = Symbol.for('message');

/** Entry that winston passes to a transport: the level and the formatted line. */
interface Entry {
  readonly [LEVEL]: string;
  readonly [MESSAGE]: string;
}

/** Characters after which the buffer is flushed. */
const maxBuffered = 64 * 1024;

/**
 * Buffered standard output. Lines that are logged in one turn of the event loop, such as those of several requests
 * (http/records.ts), are written together, because a write costs more than producing a line. The buffer is flushed when
 * the process exits.
 */
export class StandardOutput {
  #buffer = '';
  readonly #flush = (): void => {
    const text = this.#buffer;
    this.#buffer = '';
    if (text !== '') process.stdout.write(text);
  };

  constructor() {
    process.once('exit', this.#flush);
    process.stdout.on('error', ignore);
  }

  /** Writes a line. Flushes the buffer at once if `immediately` is true. */
  write(line: string, immediately = false): void {
    if (this.#buffer === '') setImmediate(this.#flush);
    this.#buffer += `${line}\n`;
    if (immediately || this.#buffer.length > maxBuffered) this.#flush();
  }

  close(): void {
    this.#flush();
    process.off('exit', this.#flush);
    process.stdout.off('error', ignore);
  }
}

/**
 * Ignores errors of standard output, such as EPIPE after it was closed. Logging such an error would cause the next one.
 */
const ignore = (): void => undefined;

/** Flushes warnings and errors at once. */
class OutputTransport extends Transport {
  #output: StandardOutput | undefined;

  override log(entry: Entry, done: () => void): void {
    this.#output ??= new StandardOutput();
    this.#output.write(entry[MESSAGE], entry[LEVEL] !== 'info');
    done();
  }

  override close(): void {
    this.#output?.close();
  }
}

/** Creates a logger that writes to standard output. `silent` disables the output in tests. */
export function createLogger(options: { level?: string; silent?: boolean } = {}): Logger {
  return winston.createLogger({
    level: options.level ?? 'info',
    silent: options.silent ?? false,
    format: winston.format.combine(stamp(), redaction(), winston.format.json()),
    transports: [new OutputTransport()],
  });
}

/** Fields of the log line of a request. */
export interface RequestLine {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly auditID: string;
  readonly method: string;
  readonly path: string;
  readonly verb: string;
  readonly status: number;
  readonly seconds: number;
  readonly sourceIP: string;
  readonly userAgent: string | undefined;
  readonly user: string | undefined;
  readonly via: string | undefined;
  readonly aborted: boolean;
  readonly traceID: string | undefined;
}

const none = (): void => undefined;

/**
 * Writes the access log line in the format of the other lines, but without winston's formats, which take about three
 * times as long (ADR 6).
 */
export function logRequest(log: Logger, level: 'info' | 'warn', line: RequestLine): void {
  if (log.silent || (log.levels[log.level] ?? 0) < (log.levels[level] ?? 0)) return;
  const fields = {
    aborted: line.aborted || undefined,
    auditID: line.auditID,
    level,
    message: 'request',
    method: line.method,
    path: line.path,
    seconds: line.seconds,
    sourceIP: line.sourceIP,
    status: line.status,
    time: rfc3339(line.time),
    trace_id: line.traceID,
    user: line.user,
    userAgent: line.userAgent,
    verb: line.verb,
    via: line.via,
  };
  const text = JSON.stringify(fields);
  const entry: Entry = { [LEVEL]: level, [MESSAGE]: mayHaveCredentials(text) ? redactedJSON(fields) : text };
  for (const transport of log.transports) transport.log?.(entry, none);
}
