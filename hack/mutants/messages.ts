/** Messages to and from the process that tries mutants with one test file. */

/** Indices of tests in the order of their definition. */
export interface Baseline {
  /** Milliseconds of each test; undefined if it fails without a mutant, so that its failure proves nothing. */
  readonly times: readonly (number | undefined)[];
  /** Tests that reach a mutant, by the id of the mutant, with how often they do. */
  readonly reached: Readonly<Record<string, readonly (readonly [test: number, hits: number])[]>>;
  /** Ids of the mutants that are reached while modules are loaded: what they change is decided before a test begins. */
  readonly loaded: readonly string[];
}

export interface Job {
  /** Path of the test file. */
  readonly file: string;
  /** Path of a JSON file: the changed sources by URL. */
  readonly sources: string;
  /** Ids of the mutants to try, with the milliseconds that all tests of each may take. */
  readonly mutants: readonly (readonly [id: string, budget: number])[];
  /** What an earlier process measured with the same file; measured anew unless given. */
  readonly baseline?: Baseline;
}

export type Message =
  | { readonly type: 'baseline'; readonly baseline: Baseline; readonly failed: readonly string[] }
  | { readonly type: 'start'; readonly id: string; readonly expected: number }
  /** `by`: the test that failed; none if all passed. */
  | { readonly type: 'tried'; readonly id: string; readonly by?: string; readonly milliseconds: number }
  /** A test that failed with a mutant fails without it too, in this process: try the mutant in a new one. */
  | { readonly type: 'unclean'; readonly id: string }
  | { readonly type: 'done' };
