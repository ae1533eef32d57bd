/** The one place that refuses what a store cannot do. */
import { badRequest } from '../../runtime/errors.ts';
import type { LogStore } from './log-store.ts';
import type { LogQuery } from '../query/query.ts';

/** Throws 400 saying what the store lacks. */
export function demandCapable({ name, capabilities }: Pick<LogStore, 'name' | 'capabilities'>, asked: LogQuery): void {
  const { operation, interval } = asked;
  if (operation === 'histogram' && !capabilities.intervals.includes(interval.unit))
    throw badRequest(
      `interval: the log store "${name}" has no buckets of ${interval.count}${interval.unit}; it has those of ${capabilities.intervals.join(', ') || 'no unit at all'}`,
    );
}
