/** Maximum names of a key in an array. With more names, a Set finds a name faster. */
const maxArray = 8;

/** Names by key. Most keys have one or two names. Two names take about 170 bytes less in an array than in a Set. */
export class NameIndex {
  readonly #names = new Map<string, string | string[] | Set<string>>();

  add(key: string, name: string): void {
    const names = this.#names.get(key);
    if (names === undefined) this.#names.set(key, name);
    else if (names instanceof Set) names.add(name);
    else if (typeof names === 'string') {
      if (names !== name) this.#names.set(key, [names, name]);
    } else if (!names.includes(name)) {
      // `push` would reserve memory for 16 more names.
      const all = [...names, name];
      this.#names.set(key, all.length > maxArray ? new Set(all) : all);
    }
  }

  delete(key: string, name: string): void {
    const names = this.#names.get(key);
    if (names instanceof Set) {
      names.delete(name);
      if (names.size > 0) return;
    } else if (names !== undefined) {
      const others = [names].flat().filter((other) => other !== name);
      if (others.length > 0) return void this.#names.set(key, others);
    }
    this.#names.delete(key);
  }

  /** Returns the names of a key, each once. */
  get(key: string): readonly string[] {
    const names = this.#names.get(key) ?? [];
    return typeof names === 'string' ? [names] : [...names];
  }

  /** Returns the number of names of a key. */
  count(key: string): number {
    const names = this.#names.get(key);
    if (names === undefined) return 0;
    if (typeof names === 'string') return 1;
    return names instanceof Set ? names.size : names.length;
  }
}
