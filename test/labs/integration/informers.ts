/** The client-go program of test/clients/go/informers: two informers, and what they see. */
import { eventually } from './eventually.ts';
import { lab } from './lab.ts';
import { startProgram } from './program.ts';

interface Seen {
  readonly informer: 'dynamic' | 'metadata';
  readonly event: 'synced' | 'add' | 'update' | 'delete' | 'error';
  readonly name?: string;
  readonly resourceVersion?: string;
  readonly labels?: readonly string[];
  /** Of synced: everything in the store. */
  readonly names?: readonly string[];
}

export interface Informers {
  readonly seen: () => readonly Seen[];
  /** Waits until both informers have told this; `matches` judges each. */
  both(event: Seen['event'], name?: string, matches?: (seen: Seen) => boolean): Promise<readonly Seen[]>;
  /** What both have told of this node, in order. */
  story(name: string): readonly (readonly string[])[];
  end(): Promise<void>;
}

export function startInformers(): Informers {
  const program = startProgram(lab().go.informers, [lab().kubeconfig]);
  const seen = (): Seen[] => program.lines().map((line) => JSON.parse(line) as Seen);
  const kinds = ['dynamic', 'metadata'] as const;
  return {
    seen,
    both: (event, name, matches = () => true) =>
      eventually(`both informers tell ${event} ${name ?? ''}`, () =>
        kinds.map((informer) => {
          const found = seen().find(
            (line) => line.informer === informer && line.event === event && line.name === name && matches(line),
          );
          if (found === undefined) throw new Error(`${informer} told\n${program.lines().join('\n')}`);
          return found;
        }),
      ),
    story: (name) =>
      kinds.map((kind) =>
        seen()
          .filter((line) => line.informer === kind && line.name === name)
          .map(({ event }) => event),
      ),
    end: () => program.end(),
  };
}
