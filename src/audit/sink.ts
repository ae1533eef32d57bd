/** Destination of events. */
export interface Sink {
  /** `event` is an Event of audit.k8s.io/v1 as JSON on one line. Never throws and never blocks. */
  write(event: string): void;
  /** Resolves when all written events are delivered or dropped. */
  close(): Promise<void>;
}
