import { until } from '../../../hack/cluster/until.ts';

const nothing = (): Promise<void> => Promise.resolve();

/** What `attempt` gives as soon as it does not throw. Never asserts a time: `patience` only ends a wait that is in vain. */
export async function eventually<T>(what: string, attempt: () => Promise<T> | T, patience = 60_000): Promise<T> {
  let value: { readonly of: T } | undefined;
  await until(
    what,
    nothing,
    async () => {
      value = { of: await attempt() };
      return true;
    },
    patience,
  );
  return (value as { readonly of: T }).of;
}
