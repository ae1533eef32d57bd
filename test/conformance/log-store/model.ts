/** Expected responses, computed by checking each record. */
import type {
  Histogram,
  Interval,
  LogRecord,
  TimeOrder,
  LogPage,
  Selection,
  Statistics,
  WorkloadPods,
} from '../../../src/logs/stores/log-store.ts';
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

/** Splits text into lower-case words according to UAX #29, as far as these records need it. */
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

/** Patterns that consecutive words must match. */
type Phrase = readonly RegExp[];

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/**
 * Returns the phrase by which a store that ignores punctuation finds a keyword. A blank or punctuation at the start or
 * end of the keyword marks the start or end of a word.
 */
function phraseIn(keyword: string): Phrase {
  const words = wordsIn(keyword);
  const text = keyword.toLowerCase();
  const first = text.indexOf(words[0] ?? '');
  const last = text.lastIndexOf(words.at(-1) ?? '') + (words.at(-1) ?? '').length;
  const edge = /[\s!#$%&()*+\-/<=>?@[\\\]^`{|}~]/;
  return words.map((word, index) => {
    const before = index === 0 && !edge.test(text[first - 1] ?? '') ? '.*' : '';
    const after = index === words.length - 1 && !edge.test(text[last] ?? '') ? '.*' : '';
    return new RegExp(`^${before}${escaped(word)}${after}$`, 'su');
  });
}

export class Model {
  readonly #records: readonly LogRecord[];
  readonly #findsSigns: boolean;
  readonly #found = new WeakMap<Selection, readonly LogRecord[]>();
  readonly #words = new Map<LogRecord, readonly string[]>();

  constructor(records: readonly LogRecord[], { findsSigns = false }: { readonly findsSigns?: boolean | undefined }) {
    this.#records = records.toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
    this.#findsSigns = findsSigns;
  }

  /** Returns the records, oldest first. */
  select(selection: Selection): readonly LogRecord[] {
    const found = this.#found.get(selection) ?? this.#find(selection);
    this.#found.set(selection, found);
    return found;
  }

  #find(selection: Selection): readonly LogRecord[] {
    const { namespaces, workloads, pods, containers, keywords } = selection;
    const start = selection.start === undefined ? '' : at(selection.start, 0);
    const end = at(selection.end, 0);
    const since = new Map([...(namespaces ?? [])].map(([name, seconds]) => [name, at(seconds, 0)]));
    const names = { pods: new Set(pods), containers: new Set(containers) };
    const phrases = keywords.log.map(phraseIn);
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
          (this.#findsSigns ? contains(keywords.log, record.log) : this.#hasAny(record, phrases))),
    );
  }

  #hasAny(record: LogRecord, phrases: readonly Phrase[]): boolean {
    const words = this.#words.get(record) ?? wordsIn(record.log);
    this.#words.set(record, words);
    return phrases.some((phrase) =>
      words.some((_, from) => phrase.every((word, index) => word.test(words[from + index] ?? ''))),
    );
  }

  query(selection: Selection, { order, from, size }: LogPage): { total: number; records: LogRecord[] } {
    const found = this.inOrder(selection, order);
    return { total: found.length, records: found.slice(from, from + size) };
  }

  inOrder(selection: Selection, order: TimeOrder): readonly LogRecord[] {
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
      // Finds the next bucket by small steps, because months, quarters and years vary in length.
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
