/**
 * Benchmarks that do not use the control planes of the other cases. `accounts` and `my-namespaces` start control planes of
 * their own. For the others, our server runs in its own process with an in-memory cluster.
 */
import { accountFindings, describeAccounts, measureAccounts, type AccountSizes } from './accounts.ts';
import { describeEventLoop, measureEventLoop } from './event-loop.ts';
import { describeFairness, isRefused, measureFairness } from './fairness.ts';
import { describeFollowing, followingFigures, measureFollowing } from './following.ts';
import { verdicts } from './goals.ts';
import { describeHotPath, isTooSlow, measureHotPath } from './hot-path.ts';
import { describeMyNamespaces, measureMyNamespaces, namespaceFindings } from './my-namespaces.ts';

export interface AloneOptions extends AccountSizes {
  /** State folder of the benchmark. */
  readonly dir: string;
  readonly signal: AbortSignal;
}

interface AloneResult {
  /** Result as JSON. */
  readonly value: unknown;
  readonly text: string;
  /** True if no response was wrong, and no shortcut of the hot path was too slow. */
  readonly isRight: boolean;
}

type Measure = (options: AloneOptions) => Promise<AloneResult>;

export const aloneCases: ReadonlyMap<string, Measure> = new Map<string, Measure>([
  [
    'accounts',
    async ({ dir, signal, ...sizes }) => {
      const value = await measureAccounts(dir, sizes, signal);
      const goals = verdicts({ cases: {}, terms: {}, others: accountFindings(value) });
      return { value, text: [describeAccounts(value), ...goals].join('\n'), isRight: value.problems.length === 0 };
    },
  ],
  [
    'my-namespaces',
    async ({ dir, signal }) => {
      const value = await measureMyNamespaces(dir, signal);
      const goals = verdicts({ cases: {}, terms: {}, others: namespaceFindings(value) });
      return { value, text: [describeMyNamespaces(value), ...goals].join('\n'), isRight: value.problems.length === 0 };
    },
  ],
  [
    'changes',
    async () => {
      const value = await measureFollowing();
      const goals = verdicts({ cases: {}, terms: {}, others: followingFigures(value) });
      return { value, text: [describeFollowing(value), ...goals].join('\n'), isRight: true };
    },
  ],
  [
    'fairness',
    async () => {
      const value = await measureFairness();
      return { value, text: describeFairness(value), isRight: !value.some(isRefused) };
    },
  ],
  [
    'event-loop',
    async () => {
      const value = await measureEventLoop();
      return { value, text: describeEventLoop(value), isRight: true };
    },
  ],
  [
    'hot-path',
    async () => {
      const value = await measureHotPath();
      return { value, text: describeHotPath(value), isRight: !value.shortcuts.some(isTooSlow) };
    },
  ],
]);
