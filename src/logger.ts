import winston from 'winston';

/** Structured logs: one JSON object a line on standard output. */
export type Logger = winston.Logger;

const secret =
  /^(authorization|cookie|set-cookie|.*password|.*secret|.*token|.*hash|code|.*_code|.*verifier|.*assertion)$/i;

/** Is the value of a field or parameter of this name never written? */
export const isSecret = (name: string): boolean => secret.test(name);

const bearer = /\b(Bearer|Basic)\s+[A-Za-z0-9\-._~+/]+=*/g;
const jwt = /\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;

const redactText = (text: string): string => text.replace(bearer, '$1 [redacted]').replace(jwt, '[redacted]');

function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (value instanceof Error) {
    const { message, stack, cause } = value;
    return redact({ message, stack, ...(cause === undefined ? {} : { cause }) }, depth + 1);
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth > 6) return '[deep]';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, isSecret(key) ? '[redacted]' : redact(item, depth + 1)]),
  );
}

const redaction = winston.format((entry) => {
  for (const key of Object.keys(entry)) entry[key] = isSecret(key) ? '[redacted]' : redact(entry[key]);
  return entry;
});

const stamp = winston.format((entry) => Object.assign(entry, { time: new Date().toISOString() }));

/** A logger that writes to standard output; `silent` for tests. */
export function createLogger(options: { level?: string; silent?: boolean } = {}): Logger {
  return winston.createLogger({
    level: options.level ?? 'info',
    silent: options.silent ?? false,
    format: winston.format.combine(stamp(), redaction(), winston.format.json()),
    transports: [new winston.transports.Console()],
  });
}
