/** Reads the logs that the servers have written since the test file started. Each byte is read once per run. */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AuditEvent } from '../../fakes/audit-event.ts';
import { lab } from './lab.ts';
import { serverLogs } from './servers.ts';

/** A line of a server's log. */
export interface LogLine {
  readonly time: string;
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

const positionsFile = (): string => join(lab().dir, 'log-positions.json');

function readPositions(): Readonly<Record<string, number>> {
  return existsSync(positionsFile())
    ? (JSON.parse(readFileSync(positionsFile(), 'utf8')) as Record<string, number>)
    : {};
}

class Log {
  readonly #file: string;
  #position: number;
  #text = '';
  readonly #lines: Record<string, unknown>[] = [];

  constructor(file: string, position: number) {
    this.#file = file;
    this.#position = position;
  }

  get position(): number {
    return this.#position;
  }

  get text(): string {
    this.#read();
    return this.#text;
  }

  get lines(): readonly Record<string, unknown>[] {
    this.#read();
    return this.#lines;
  }

  /** Reads appended complete lines. Throws if a line is not JSON. */
  #read(): void {
    const bytes = readFrom(this.#file, this.#position);
    const complete = bytes.subarray(0, bytes.lastIndexOf('\n') + 1);
    if (complete.length === 0) return;
    const text = complete.toString('utf8');
    this.#position += complete.length;
    this.#text += text;
    for (const line of text.slice(0, -1).split('\n')) this.#lines.push(JSON.parse(line) as Record<string, unknown>);
  }
}

function readFrom(file: string, position: number): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(descriptor).size - position));
    return bytes.subarray(0, readSync(descriptor, bytes, { position }));
  } finally {
    closeSync(descriptor);
  }
}

let positions: Readonly<Record<string, number>> | undefined;
const logs = new Map<string, Log>();

function logOf(file: string): Log {
  positions ??= readPositions();
  const known = logs.get(file) ?? new Log(file, positions[basename(file)] ?? 0);
  logs.set(file, known);
  return known;
}

/** Returns the lines that a server has logged since the test file started, without audit events. */
export const readLog = (file: string): LogLine[] =>
  logOf(file).lines.filter(({ kind }) => kind === undefined) as unknown as LogLine[];

/** Returns the audit events that a server has logged since the test file started. */
export const readAudit = (file: string): AuditEvent[] =>
  logOf(file).lines.filter(({ kind }) => kind === 'Event') as unknown as AuditEvent[];

/** Returns everything that a server has logged since the test file started. */
export const readLogText = (file: string): string => logOf(file).text;

/** Saves the read positions for the next test file. */
export function advanceLogs(): void {
  const now = serverLogs(lab().dir).map((file) => [basename(file), logOf(file).position]);
  writeFileSync(positionsFile(), JSON.stringify(Object.fromEntries(now)));
}
