/** Tests whether the duration of a failed login reveals the reason of the failure. */
import { Connection, type Target } from './connection.ts';
import { loginForm, type Users } from './readers.ts';
import { problemOf, request, type Request } from './requests.ts';
import { ascending, compare, quantile, type Comparison } from './statistics.ts';

const title = 'login: refused ones';
const samples = 400;
/** Probability of a false alarm over all comparisons. */
const errorRate = 0.01;

export interface LoginFailures {
  readonly reasons: readonly { readonly reason: string; readonly p50: number; readonly p90: number }[];
  readonly comparisons: readonly ({ readonly of: readonly [string, string] } & Comparison)[];
  readonly problems: readonly string[];
}

export async function measureLoginFailures(
  target: Target,
  { readers, disabled }: Users,
  signal: AbortSignal,
): Promise<LoginFailures> {
  const refused = { status: 400, text: '"invalid_grant"' };
  const login = (username: string, password: string): Request =>
    request('/oauth/token', refused, { form: loginForm({ username, password }) });
  const makers: Readonly<Record<string, (index: number) => Request>> = {
    'wrong password': (index) => login(readers[index % readers.length]?.username ?? '', `no-${index}`),
    'unknown user': (index) => login(`nobody-${index}`, `no-${index}`),
    'disabled user': (index) => {
      const { username = '', password = '' } = disabled[index % disabled.length] ?? {};
      return login(username, password);
    },
  };
  const times = new Map(Object.keys(makers).map((reason) => [reason, [] as number[]]));
  const problems = new Set<string>();
  const connection = new Connection(target);
  for (let index = -5; index < samples; index++) {
    // The order is random, so that it does not affect the comparison.
    for (const [reason, make] of shuffled(Object.entries(makers))) {
      signal.throwIfAborted();
      const { text, expected } = make(index + 5);
      const wire = Buffer.from(text, 'latin1');
      const begin = performance.now();
      const response = await connection.send(wire, true);
      const duration = performance.now() - begin;
      const problem = problemOf(response, expected);
      if (problem !== undefined) problems.add(`${reason}: ${problem}`);
      else if (index >= 0) times.get(reason)?.push(duration);
    }
    if (problems.size > 0) break;
  }
  connection.close();
  const reasons = [...times].map(([reason, all]) => {
    const sorted = ascending(all);
    return { reason, p50: quantile(sorted, 0.5), p90: quantile(sorted, 0.9) };
  });
  const pairs = [...times].flatMap(([a, first], index) =>
    [...times].slice(index + 1).map(([b, second]) => ({ of: [a, b] as const, ...compare(first, second) })),
  );
  return { reasons, comparisons: pairs, problems: [...problems] };
}

const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map((item) => [Math.random(), item] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, item]) => item);

/** Each of the two tests of each of the three pairs has a sixth of the error rate (Bonferroni correction). */
export function describeLoginFailures({ reasons, comparisons, problems }: LoginFailures): string {
  if (problems.length > 0) return `${title}: WRONG: ${problems.join('; ')}`;
  const threshold = errorRate / (2 * comparisons.length);
  return [
    `${title}: ${samples} of each kind, sequentially in random order`,
    ...reasons.map(
      ({ reason, p50, p90 }) => `  ${reason.padEnd(34)} p50 ${p50.toFixed(2)} ms, p90 ${p90.toFixed(2)} ms`,
    ),
    ...comparisons.map(
      ({ of, exceeds, rankChance, distance, distanceChance }) =>
        `  ${of.join(' / ').padEnd(34)} the first is the slower with probability ${exceeds.toFixed(3)}, by chance ${rankChance.toFixed(3)} ` +
        `(Mann–Whitney); distance ${distance.toFixed(3)}, by chance ${distanceChance.toFixed(3)} (Kolmogorov–Smirnov)`,
    ),
    comparisons.every(({ rankChance, distanceChance }) => Math.min(rankChance, distanceChance) > threshold)
      ? `  indistinguishable: every p-value is above ${threshold.toFixed(4)}`
      : `  DISTINGUISHABLE: a p-value is not above ${threshold.toFixed(4)}`,
  ].join('\n');
}
