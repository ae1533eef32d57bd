/** Records as a cluster writes them, identical in each run, including all known difficult cases. */
import type { LogRecord } from '../../../src/logs/stores/log-store.ts';

/** Positions of the difficult cases. */
export const corpus = {
  /** Whole seconds that enclose the records, across the end of a month. */
  start: Date.UTC(2026, 1, 27, 21) / 1_000,
  end: Date.UTC(2026, 2, 3, 3) / 1_000,
  /** A second with records just before, at and just after its start. */
  edge: Date.UTC(2026, 2, 1) / 1_000,
  /** A second in which many records have the same time. */
  burst: Date.UTC(2026, 1, 28, 12) / 1_000,
  tenants: 5_000,
} as const;

/** Small deterministic generator, sufficient here (https://en.wikipedia.org/wiki/Linear_congruential_generator). */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const second = (seconds: number): string => new Date(seconds * 1_000).toISOString().slice(0, 19);

export const at = (seconds: number, nanoseconds: number): string =>
  `${second(seconds)}.${String(nanoseconds).padStart(9, '0')}Z`;

const messages = [
  'GET /api/v1/pods?limit=500 HTTP/1.1" 200 1532 "kube-probe/1.30"',
  'connection refused to 10.20.30.40:5432 after 3 tries',
  'Connection reset by peer',
  'ERROR failed to reconcile: object has been modified; please apply your changes to the latest version',
  'Warning: deprecated flag --feature-gates=x',
  'level=info msg="synced 12 items" duration=35.2ms',
  'panic: runtime error: index out of range [5] with length 3',
  'user_id=4711 session_start ok',
  "can't open /var/lib/data.db: no such file",
  'Erreur: déjà vu à Zürich, größer als 5',
  '节点 已经 就绪 node ready',
  'retry in 1,000.5 s; a:b c.d 1.2.3 e_f __x',
] as const;

/** Texts of one record each, in the namespace `special`. */
const special = [
  '\u001b[31mred alert\u001b[0m behind colours',
  'first line\nsecond line\n\tat third line',
  'not all of this was UTF-8: \ufffd\ufffd end of it',
  'a+b*c?d [x-y] {1,2} (z|w) ^start $end back\\slash . dot',
  'quotes "double" \'single\' `back` and \\"escaped\\"',
  '100% of %s and ${variable} and <b>&amp;</b>',
  'carriage\rreturn and tab\tand nul-free bell\u0007',
  '   leading and trailing blanks   ',
  '',
  'emoji 😀 and surrogates 𝒳',
  `one very long word ${'x'.repeat(300)}tail`,
  'KubeProxy UPPERCASE MixedCase lowercase',
] as const;

export const megabyte = 1024 * 1024;

export function createRecords(count: number): readonly LogRecord[] {
  const random = randomNumbers(20_260_228);
  const records: LogRecord[] = [];
  const add = (time: string, namespace: string, pod: string, container: string, log: string): void => {
    records.push({ time, namespace, pod, container, log });
  };
  const { start, end, edge, burst, tenants } = corpus;
  for (const [seconds, nanoseconds] of [
    [edge - 1, 999_999_999],
    [edge, 0],
    [edge, 0],
    [edge, 1],
    [edge, 999],
    [edge, 400_000],
    [edge, 999_999],
    [edge, 1_000_000],
    [edge, 5_000_000],
    [edge, 500_000_000],
    [edge, 999_999_999],
    [edge + 1, 0],
    [edge + 1, 1],
  ] as const)
    add(at(seconds, nanoseconds), 'edges', 'edge-0', 'app', `at the edge #${records.length}`);
  for (const [index, log] of special.entries())
    add(at(edge + 3_600 + index, index * 1_000_001), 'special', 'special-6b7f9-x2x4z', 'main', log);
  for (let index = 0; index < 3; index += 1)
    add(
      at(edge + 7_200 + index, 7),
      'special',
      'big-0',
      'main',
      `big ${index} ${'0123456789abcde '.repeat(megabyte / 16)}`,
    );
  for (let index = 0; index < 2_500; index += 1)
    add(at(burst, 123_456_789), 'burst', `burst-${index % 7}`, 'app', `one of many at one time #${index}`);
  for (let index = 0; index < 600; index += 1)
    add(
      at(burst, 200_000_000 + random(3_000_000)),
      'burst',
      'close',
      'app',
      `one of many in three milliseconds #${index}`,
    );
  // Each tenant has a record before its start time, one at that time, and later ones.
  for (let tenant = 0; tenant < tenants; tenant += 1) {
    const name = tenantName(tenant);
    const since = tenantSince(tenant);
    add(at(since - 1, 999_000_000), name, 'before', 'app', `of the one before #${tenant}`);
    add(at(since, 0), name, 'first', 'app', `first of tenant ${tenant}`);
    for (let more = 0; more < 2; more += 1)
      add(
        at(since + random(end - since), random(1e9)),
        name,
        `web-${more}`,
        'app',
        `hello of tenant ${tenant} ERROR_${tenant % 10}`,
      );
  }
  while (records.length < count) {
    const namespace = `ns-${random(40)}`;
    const workload = ['web', 'api', 'db', 'web-frontend', 'job'][random(5)] ?? '';
    const pod =
      workload === 'db'
        ? `db-${random(3)}`
        : `${workload}-${['7d9c5f6b84', '5b8f7c9d66'][random(2)]}-${['x7k2p', 'bcdfg'][random(2)]}`;
    const container = ['app', 'sidecar-proxy'][random(4) === 0 ? 1 : 0] ?? '';
    const text = messages[random(messages.length)] ?? '';
    add(
      at(start + random(end - start), random(1e9)),
      namespace,
      pod,
      container,
      `${text} id${random(1_000)} #${records.length}`,
    );
  }
  return records;
}

export const tenantName = (tenant: number): string => `tenant-${String(tenant).padStart(4, '0')}`;
/** Returns distinct whole seconds. */
export const tenantSince = (tenant: number): number => corpus.start + 60 + tenant * 50;
