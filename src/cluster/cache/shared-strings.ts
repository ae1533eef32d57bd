/** Minimum length of a shared string. V8 already shares shorter strings that `JSON.parse` returns. */
const minLength = 11;
/** Maximum length of a shared string, which limits the memory of strings whose objects are gone. */
const maxLength = 512;
/** Maximum strings that are remembered. After that, all strings are forgotten, and frequent strings soon return. */
const maxStrings = 8_192;

/**
 * Makes equal strings of different objects share memory. Objects of one kind repeat many strings: namespace, API
 * version, groups, messages of conditions, user agents.
 */
export class SharedStrings {
  readonly #strings = new Map<string, string>();

  /** Replaces the strings in a value that `JSON.parse` has just returned. Returns the value. */
  share<T extends object>(value: T): T {
    const members = value as Record<string, unknown>;
    for (const key in members) {
      const member = members[key];
      if (typeof member === 'string') {
        if (member.length >= minLength && member.length <= maxLength) members[key] = this.#shared(member);
      } else if (typeof member === 'object' && member !== null) this.share(member);
    }
    return value;
  }

  #shared(text: string): string {
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    if (this.#strings.size === maxStrings) this.#strings.clear();
    this.#strings.set(text, text);
    return text;
  }
}
