/** What the answers must be, by looking at each record. */
import type {
  Capabilities,
  Histogram,
  Interval,
  LogRecord,
  Order,
  Page,
  Selection,
  Statistics,
  WorkloadPods,
} from '../../../src/logs/log-store.ts';
import { at } from './corpus.ts';

export const everything: Selection = {
  start: undefined,
  end: Date.UTC(2030, 0) / 1_000,
  namespaces: undefined,
  workloads: [],
  pods: [],
  containers: [],
  keywords: { namespace: [], workload: [], pod: [], container: [], log: [] },
};

const isPodOf = ({ pattern, alsoPods, notPods }: WorkloadPods, pod: string): boolean =>
  alsoPods.includes(pod) || (new RegExp(`^(?:${pattern})$`).test(pod) && !notPods.includes(pod));

const kindOf = (character: string): 'letter' | 'digit' | 'joiner' | 'sign' | 'other' => {
  if (/[\p{Script=Han}]/u.test(character)) return 'sign';
  if (/\p{L}|\p{M}/u.test(character)) return 'letter';
  if (/\p{Nd}/u.test(character)) return 'digit';
  return character === '_' ? 'joiner' : 'other';
};

const contains = (all: readonly string[], name: string): boolean =>
  all.length === 0 || all.some((keyword) => name.toLowerCase().includes(keyword.toLowerCase()));

/** As UAX #29 cuts it, as far as the records here have need of it; in small letters. */
export function wordsIn(text: string): string[] {
  const found: string[] = [];
  const characters = Array.from(text);
  let word = '';
  const end = (): void => {
    if (/[^_]/.test(word)) found.push(...(word.toLowerCase().match(/.{1,255}/gsu) ?? []));
    word = '';
  };
  for (const [index, character] of characters.entries()) {
    const kind = kindOf(character);
    const [before, after] = [characters[index - 1] ?? ' ', characters[index + 1] ?? ' '].map(kindOf);
    const isBetween = (what: string): boolean => before === what && after === what;
    if (kind === 'sign') {
      end();
      found.push(character);
    } else if (kind !== 'other') word += character;
    else if ((/[:.'·]/.test(character) && isBetween('letter')) || (/[.',;]/.test(character) && isBetween('digit')))
      word += character;
    else end();
  }
  end();
  return found;
}

export class Model {
  readonly #records: readonly LogRecord[];
  readonly #findsSubstrings: boolean;
  readonly #found = new WeakMap<Selection, readonly LogRecord[]>();
  readonly #words = new Map<LogRecord, readonly string[]>();

  constructor(records: readonly LogRecord[], { findsSubstrings = false }: Capabilities) {
    this.#records = records.toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
    this.#findsSubstrings = findsSubstrings;
  }

  /** The oldest first. */
  select(selection: Selection): readonly LogRecord[] {
    const found = this.#found.get(selection) ?? this.#look(selection);
    this.#found.set(selection, found);
    return found;
  }

  #look(selection: Selection): readonly LogRecord[] {
    const { namespaces, workloads, pods, containers, keywords } = selection;
    const start = selection.start === undefined ? '' : at(selection.start, 0);
    const end = at(selection.end, 0);
    const since = new Map([...(namespaces ?? [])].map(([name, seconds]) => [name, at(seconds, 0)]));
    const names = { pods: new Set(pods), containers: new Set(containers) };
    const words = keywords.log.map(wordsIn);
    return this.#records.filter(
      (record) =>
        record.time >= start &&
        record.time <= end &&
        (namespaces === undefined || record.time >= (since.get(record.namespace) ?? '~')) &&
        (pods.length === 0 || names.pods.has(record.pod)) &&
        (containers.length === 0 || names.containers.has(record.container)) &&
        (workloads.length === 0 || workloads.some((one) => isPodOf(one, record.pod))) &&
        contains(keywords.namespace, record.namespace) &&
        (keywords.workload.length === 0 || keywords.workload.some((one) => isPodOf(one, record.pod))) &&
        contains(keywords.pod, record.pod) &&
        contains(keywords.container, record.container) &&
        (keywords.log.length === 0 ||
          (this.#findsSubstrings ? contains(keywords.log, record.log) : this.#hasAny(record, words))),
    );
  }

  #hasAny(record: LogRecord, keywords: readonly (readonly string[])[]): boolean {
    const words = this.#words.get(record) ?? wordsIn(record.log);
    this.#words.set(record, words);
    return keywords.some((keyword) =>
      words.some((_, from) =>
        keyword.every((word, index) =>
          index === keyword.length - 1 ? words[from + index]?.startsWith(word) === true : words[from + index] === word,
        ),
      ),
    );
  }

  query(selection: Selection, { order, from, size }: Page): { total: number; records: LogRecord[] } {
    const found = this.inOrder(selection, order);
    return { total: found.length, records: found.slice(from, from + size) };
  }

  inOrder(selection: Selection, order: Order): readonly LogRecord[] {
    const found = this.select(selection);
    return order === 'asc' ? found : found.toReversed();
  }

  statistics(selection: Selection): Statistics {
    const found = this.select(selection);
    const containers = new Set(found.map(({ namespace, pod, container }) => `${namespace}/${pod}/${container}`));
    return { containers: containers.size, logs: found.length };
  }

  histogram(selection: Selection, interval: Interval): Histogram {
    const counts = new Map<number, number>();
    for (const { time } of this.select(selection)) {
      const bucket = bucketOf(Date.parse(time), interval);
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    }
    const times = [...counts.keys()].toSorted((a, b) => a - b);
    const histograms: { time: number; count: number }[] = [];
    for (let time = times[0] ?? 1; time <= (times.at(-1) ?? 0);) {
      histograms.push({ time, count: counts.get(time) ?? 0 });
      // An hour more than the longest of its kind is in the next one.
      let next = time;
      while (bucketOf(next, interval) === time)
        next += Math.min(interval.count * 1_000, 1_000) * (interval.unit === 's' ? 1 : 60);
      time = bucketOf(next, interval);
    }
    return { total: histograms.reduce((sum, { count }) => sum + count, 0), histograms };
  }
}

function bucketOf(time: number, { count, unit }: Interval): number {
  const date = new Date(time);
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth();
  if (unit === 'y') return Date.UTC(year, 0);
  if (unit === 'q') return Date.UTC(year, month - (month % 3));
  if (unit === 'M') return Date.UTC(year, month);
  if (unit === 'w') return Date.UTC(year, month, date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  const length = count * { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit];
  return time - (time % length);
}
