/** Benchmarks without a control plane. Our server runs in its own process with an in-memory cluster. */
import { describeEventLoop, measureEventLoop } from './event-loop.ts';
import { describeFairness, isRefused, measureFairness } from './fairness.ts';
import { describeFollowing, followingFigures, measureFollowing } from './following.ts';
import { verdicts } from './goals.ts';
import { describeHotPath, isTooSlow, measureHotPath } from './hot-path.ts';

interface AloneResult {
  /** Result as JSON. */
  readonly value: unknown;
  readonly text: string;
  /** True if no response was wrong, and no shortcut of the hot path was too slow. */
  readonly isRight: boolean;
}

export const aloneCases: ReadonlyMap<string, () => Promise<AloneResult>> = new Map<string, () => Promise<AloneResult>>([
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
