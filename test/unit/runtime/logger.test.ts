import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate as immediate } from 'node:timers/promises';
import { membersOf } from '../../../src/cluster/cache/json-scan.ts';
import { createLogger, logRequest, type RequestLine } from '../../../src/runtime/logger.ts';
import { rfc3339 } from '../../../src/runtime/time.ts';
import { logOfLines } from '../../fakes/log.ts';

function logged(message: string, fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { log, lines } = logOfLines();
  log.info(message, fields);
  const [line = ''] = lines();
  return JSON.parse(line) as Record<string, unknown>;
}

test('a log line is one JSON object with time, level and fields', () => {
  expect(logged('a message\nof two lines', { a: 1, b: { c: [true, null] } })).toEqual({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    level: 'info',
    message: 'a message\nof two lines',
    a: 1,
    b: { c: [true, null] },
  });
});

test('an error is logged with its cause and its stack', () => {
  const { error } = logged('x', { error: new Error('outer', { cause: new Error('inner') }) });
  expect(error).toMatchObject({
    message: 'outer',
    cause: { message: 'inner' },
    stack: expect.stringContaining('.test.ts'),
  });
});

test.each(['hunter2', '{"a": "b", "c": hunter2}', '{"token":"hunter2'])(
  'an error of JSON.parse() is logged without the quoted text: %s',
  (text) => {
    let error: unknown;
    try {
      JSON.parse(text);
    } catch (thrown) {
      error = thrown;
    }
    const line = logged('x', { error: new Error('outer', { cause: error }) });
    expect(JSON.stringify(line)).not.toContain('hunter2');
    expect(line).toMatchObject({
      error: {
        cause: { message: expect.stringMatching(/^invalid syntax/), stack: expect.stringContaining('.test.ts') },
      },
    });
  },
);

test('an error about a malformed response of kube-apiserver is logged with the message of the error', () => {
  let error: unknown;
  try {
    membersOf(Buffer.from('[]'), 0);
  } catch (thrown) {
    error = thrown;
  }
  expect(logged('x', { error })).toMatchObject({ error: { message: 'no JSON object at byte 0' } });
});

const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl';

describe('secrets are not logged', () => {
  const names = fc.constantFrom(
    'password',
    'newPassword',
    'Authorization',
    'cookie',
    'set-cookie',
    'secret',
    'client_secret',
    'clientSecret',
    'token',
    'access_token',
    'refreshToken',
    'passwordHash',
    'currentHash',
    'code',
    'code_verifier',
    'client_assertion',
  );

  // evidence: logger-redaction
  test('the value of a field with a secret name is not logged at any depth of an object', () => {
    fc.assert(
      fc.property(names, fc.array(fc.constantFrom('a', 'list', 'error'), { maxLength: 4 }), (name, path) => {
        const nested = path.reduceRight<unknown>(
          (inner, key) =>
            key === 'list' ? [inner] : key === 'error' ? new Error('x', { cause: inner }) : { [key]: inner },
          { [name]: 'hush-hush' },
        );
        expect(JSON.stringify(logged('x', { nested, [name]: { inner: 'hush-hush' } }))).not.toContain('hush-hush');
      }),
    );
  });

  test.each([`Bearer ${jwt}`, `bearer x ${jwt}`, `at /x?token=${jwt}&y`, 'Basic aHVzaDpodXNo', 'Bearer opaque-0123'])(
    'secrets are not logged in any text: %s',
    (text) => {
      for (const line of [logged(text), logged('x', { text }), logged('x', { error: new Error(text) })])
        expect(JSON.stringify(line)).not.toMatch(/eyJ|aHVz|opaque/);
    },
  );
});

test('no field value of any kind makes logging fail', () => {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  fc.assert(fc.property(fc.object(), (fields) => JSON.stringify(logged('x', { fields })).length > 0));
  for (const value of [cycle, 1n, undefined, Symbol('x'), () => 1, new Map([[1, 2]]), NaN])
    expect(logged('x', { value })).toMatchObject({ message: 'x' });
});

describe('the log line of a request', () => {
  const word = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(`Bearer ${jwt}`, `/x?token=${jwt}`, 'Basic aHVzaDpodXNo', 'bearer', 'eyJ', '"\\\n'),
  );
  const optional = fc.option(word, { nil: undefined });
  const request: fc.Arbitrary<RequestLine> = fc.record({
    time: fc.integer({ min: 0, max: 4e12 }),
    auditID: word,
    method: word,
    path: word,
    verb: word,
    status: fc.integer({ min: 100, max: 599 }),
    seconds: fc.double({ min: 0, max: 1e5, noNaN: true }),
    sourceIP: word,
    userAgent: optional,
    user: optional,
    via: optional,
    aborted: fc.boolean(),
    traceID: optional,
  });

  test('the prepared log line of a request equals the line that the logger writes for the same fields', () => {
    fc.assert(
      fc.property(request, fc.constantFrom('info', 'warn'), (line, level) => {
        const { log, lines } = logOfLines();
        logRequest(log, level, line);
        expect(lines()[0]).toContain(`"time":"${rfc3339(line.time)}"`);
        const { traceID, ...others } = line;
        log.log(level, 'request', { ...others, aborted: line.aborted || undefined, trace_id: traceID });
        const [ours, other] = lines().map((text) => text.replace(/"time":"[^"]+"/, '"time":""'));
        expect(ours).toBe(other);
      }),
    );
  });

  test('the prepared log line of a request is not written below the log level or by a silent logger', () => {
    const line: RequestLine = fc.sample(request, 1)[0] as RequestLine;
    const { log, lines } = logOfLines();
    log.level = 'error';
    logRequest(log, 'warn', line);
    log.level = 'info';
    log.silent = true;
    logRequest(log, 'warn', line);
    expect(lines()).toEqual([]);
  });
});

describe('standard output', () => {
  let written: string[];
  beforeEach(() => {
    written = [];
    jest.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  test('standard output receives the log lines of one turn of the event loop together', async () => {
    const log = createLogger();
    log.info('one');
    await Promise.resolve();
    log.info('two');
    expect(written).toEqual([]);
    await immediate();
    expect(written.map((text) => text.split('\n').length)).toEqual([3]);
    log.info('three');
    await immediate();
    expect(written).toHaveLength(2);
  });

  test('standard output receives log lines above the level info at once, after all earlier ones', () => {
    const log = createLogger();
    log.info('one');
    log.error('two');
    expect(written.join('')).toMatch(/one.*\n.*two.*\n$/);
  });

  test('standard output receives the remaining log lines when the process ends', () => {
    const log = createLogger();
    const before = process.listeners('exit');
    log.info('the last but one');
    log.info('the last one');
    const added = process.listeners('exit').filter((listener) => !before.includes(listener));
    expect(added).toHaveLength(1);
    expect(written).toEqual([]);
    for (const listener of added) listener(0);
    expect(written.join('')).toContain('the last one');
    log.close();
    expect(process.listeners('exit')).toEqual(before);
  });

  test('standard output receives the waiting log lines at once when there are many', () => {
    const log = createLogger();
    for (let i = 0; i < 100; i += 1) log.info('x'.repeat(1_000));
    expect(written.join('').length).toBeGreaterThan(60_000);
  });
});

test('logging to a closed standard output causes no errors', async () => {
  const child = fork(new URL('../../fakes/logging-process.ts', import.meta.url), {
    execArgv: [],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const message = async (): Promise<unknown> => (await once(child, 'message'))[0];
  expect(await message()).toBe('ready');
  child.stdout?.destroy();
  child.send('closed');
  expect(await message()).toBe(0);
  await once(child, 'exit');
});
