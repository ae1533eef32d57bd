/** Messages to and from the worker process, which tries mutants with one test file. */

/** Results of a test file without mutants. Tests are identified by index, in the order of their definition. */
export interface Baseline {
  /**
   * Duration of each test in milliseconds; undefined if it fails without a mutant, because its failure then proves
   * nothing.
   */
  readonly times: readonly (number | undefined)[];
  /** Tests that reach a mutant and the number of hits, by mutant id. */
  readonly reached: Readonly<Record<string, readonly (readonly [test: number, hits: number])[]>>;
  /**
   * Ids of mutants that are reached while modules are loaded: this code runs before the first test, so no switch
   * affects it.
   */
  readonly loaded: readonly string[];
}

export interface Job {
  /** Path of the test file. */
  readonly file: string;
  /** Path of a JSON file that maps URLs to mutated sources. */
  readonly sources: string;
  /** Ids of the mutants to try, and the maximum total time of the tests of each mutant in milliseconds. */
  readonly mutants: readonly (readonly [id: string, budget: number])[];
  /** Baseline that an earlier process measured with the same file. The worker measures a missing baseline. */
  readonly baseline?: Baseline;
}

export type Message =
  | { readonly type: 'baseline'; readonly baseline: Baseline; readonly failed: readonly string[] }
  | { readonly type: 'start'; readonly id: string; readonly expected: number }
  /** `by` is the test that failed, undefined if all passed. */
  | { readonly type: 'tried'; readonly id: string; readonly by?: string; readonly milliseconds: number }
  /** A test failed with the mutant and then without it in the same process: try the mutant in a new process. */
  | { readonly type: 'unclean'; readonly id: string }
  | { readonly type: 'done' };
