/** The client-go program of test/clients/go/informers with two informers, and their events. */
import { eventually } from './eventually.ts';
import { lab } from './lab.ts';
import { startProgram } from './program.ts';

interface Seen {
  readonly informer: 'dynamic' | 'metadata';
  readonly event: 'synced' | 'add' | 'update' | 'delete' | 'error';
  readonly name?: string;
  readonly resourceVersion?: string;
  readonly labels?: readonly string[];
  /** Names of the objects in the store; only in events of the type `synced`. */
  readonly names?: readonly string[];
}

export interface Informers {
  readonly seen: () => readonly Seen[];
  /** Waits until both informers have reported an event for which `matches` returns true. */
  both(event: Seen['event'], name?: string, matches?: (seen: Seen) => boolean): Promise<readonly Seen[]>;
  /** Returns the events of both informers for this node, in order. */
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
      eventually(`both informers report ${event} ${name ?? ''}`, () =>
        kinds.map((informer) => {
          const found = seen().find(
            (line) => line.informer === informer && line.event === event && line.name === name && matches(line),
          );
          if (found === undefined) throw new Error(`${informer} reported\n${program.lines().join('\n')}`);
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
