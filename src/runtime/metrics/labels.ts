/**
 * Allowed values of labels. Each label has a maximum number of values, so that callers cannot create unlimited time
 * series.
 */

export interface LabelValues<V extends string = string> {
  /** Description for the documentation. */
  readonly description: string;
  /** Maximum number of values, including `other`. */
  readonly max: number;
  /** All values, for a small fixed set. */
  readonly values?: readonly string[];
  /** Returns the value, or `other` if it is not allowed. */
  readonly bound: (value: V) => string;
}

const other = 'other';

/** Allows a fixed set of values. */
export function oneOf<const V extends string>(...values: readonly V[]): LabelValues<V> {
  return { ...among(values, values.map((value) => `\`${value}\``).join(', ')), values };
}

/** Allows a fixed set of values that is too large for a list in the documentation. */
export function among<V extends string>(values: readonly V[], description: string): LabelValues<V> {
  const allowed: ReadonlySet<string> = new Set(values);
  return { description, max: allowed.size + 1, bound: (value) => (allowed.has(value) ? value : other) };
}

/**
 * Allows the first `max` values. Use this function only for names that callers do not choose, such as names in the
 * configuration.
 */
export function first(max: number, description: string): LabelValues {
  const known = new Set<string>();
  return {
    description,
    max: max + 1,
    bound(value) {
      if (known.has(value)) return value;
      if (known.size >= max) return other;
      known.add(value);
      return value;
    },
  };
}

/** Allows values that are added while the server runs. Do not call `add` with values that callers choose. */
export function registered(max: number, description: string): LabelValues & { readonly add: (value: string) => void } {
  const known = new Set<string>();
  return {
    description,
    max: max + 2,
    add: (value) => {
      if (known.size < max) known.add(value);
    },
    // The label of non-resource requests is ''.
    bound: (value) => (value === '' || known.has(value) ? value : other),
  };
}
