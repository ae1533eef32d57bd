import winston from 'winston';
import Transport from 'winston-transport';
import { isSecret, redactText } from './redaction.ts';

/** Structured logs: one JSON object a line on standard output. */
export type Logger = winston.Logger;

function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (value instanceof Error) {
    const { message, stack, cause } = isQuoting(value) ? withoutText(value) : value;
    return redact({ message, stack, ...(cause === undefined ? {} : { cause }) }, depth + 1);
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth > 6) return '[deep]';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, isSecret(key) ? '[redacted]' : redact(item, depth + 1)]),
  );
}

/** JSON.parse quotes the text that it does not understand, which may be a Secret or a token. By name: there is one class a realm. */
const isQuoting = ({ name }: Error): boolean => name === 'SyntaxError';

/** The error without its message, but for the position. */
function withoutText({ message, stack = '', cause }: Error): Pick<Error, 'message' | 'stack' | 'cause'> {
  const shown = `invalid syntax${/ at position \d+/.exec(message)?.[0] ?? ''}`;
  return { message: shown, stack: stack.replace(message, () => shown), cause };
}

const redaction = winston.format((entry) => {
  for (const key of Object.keys(entry)) entry[key] = isSecret(key) ? '[redacted]' : redact(entry[key]);
  return entry;
});

const stamp = winston.format((entry) => Object.assign(entry, { time: new Date().toISOString() }));

const LEVEL = Symbol.for('level');
const MESSAGE = Symbol.for('message');

/** What winston hands to a transport: with the level and the finished line under these symbols. */
interface Entry {
  readonly [LEVEL]: string;
  readonly [MESSAGE]: string;
}

/** So many characters, or milliseconds: then what is held is written. */
const maxHeld = 64 * 1024;
const longestHeld = 5;

/**
 * Standard output, to which the lines of some milliseconds go in one write: a write costs more than a line. At the end of the process nothing
 * is left.
 */
export class StandardOutput {
  #held = '';
  #next: NodeJS.Timeout | undefined;
  #isAttached = false;
  readonly #flush = (): void => {
    clearTimeout(this.#next);
    this.#next = undefined;
    const text = this.#held;
    this.#held = '';
    process.stdout.write(text);
  };

  /** `now`: it cannot wait. */
  write(line: string, now = false): void {
    this.#held += `${line}\n`;
    if (now || this.#held.length > maxHeld) this.#flush();
    else this.#next ??= setTimeout(this.#flush, longestHeld);
    if (!this.#isAttached) {
      process.once('exit', this.#flush);
      process.stdout.on('error', ignore);
    }
    this.#isAttached = true;
  }

  close(): void {
    this.#flush();
    process.off('exit', this.#flush);
    process.stdout.off('error', ignore);
  }
}

/** Standard output is closed. The line is lost: logging the error there would cause the next one. */
const ignore = (): void => undefined;

/** What is worse than information goes at once. */
class OutputTransport extends Transport {
  readonly #output = new StandardOutput();

  override log(entry: Entry, done: () => void): void {
    this.#output.write(entry[MESSAGE], entry[LEVEL] !== 'info');
    done();
  }

  override close(): void {
    this.#output.close();
  }
}

/** A logger that writes to standard output; `silent` for tests. */
export function createLogger(options: { level?: string; silent?: boolean } = {}): Logger {
  return winston.createLogger({
    level: options.level ?? 'info',
    silent: options.silent ?? false,
    format: winston.format.combine(stamp(), redaction(), winston.format.json()),
    transports: [new OutputTransport()],
  });
}

/** What the log says of a request. */
export interface RequestLine {
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
}

const none = (): void => undefined;

/**
 * Writes the same line as `log.log(level, 'request', line)`, without winston's formats: they take ten times as long, and there is one line
 * a request (ADR 6).
 */
export function logRequest(log: Logger, level: 'info' | 'warn', line: RequestLine): void {
  if (log.silent || (log.levels[log.level] ?? 0) < (log.levels[level] ?? 0)) return;
  const fields = {
    aborted: line.aborted || undefined,
    auditID: redactText(line.auditID),
    level,
    message: 'request',
    method: redactText(line.method),
    path: redactText(line.path),
    seconds: line.seconds,
    sourceIP: redactText(line.sourceIP),
    status: line.status,
    time: new Date().toISOString(),
    user: line.user && redactText(line.user),
    userAgent: line.userAgent && redactText(line.userAgent),
    verb: redactText(line.verb),
    via: line.via && redactText(line.via),
  };
  const entry: Entry = { [LEVEL]: level, [MESSAGE]: JSON.stringify(fields) };
  for (const transport of log.transports) transport.log?.(entry, none);
}
