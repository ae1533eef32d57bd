export interface RunningStore {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** At once: nobody needs its data. */
  stop(): Promise<void>;
}
