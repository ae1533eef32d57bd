/** Where events go. */
export interface Sink {
  /** `event`: an Event of audit.k8s.io/v1 as JSON, on one line. Never throws and never waits. */
  write(event: string): void;
  /** Resolves when what was written is there, or cannot be any more. */
  close(): Promise<void>;
}
