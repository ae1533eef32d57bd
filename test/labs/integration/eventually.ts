import { until } from '../../../hack/cluster/until.ts';

const nothing = (): Promise<void> => Promise.resolve();

/**
 * Returns the result of `attempt` as soon as it does not throw. `timeout` only ends a wait that would never succeed.
 * The timeout does not check a duration.
 */
export async function eventually<T>(what: string, attempt: () => Promise<T> | T, timeout = 60_000): Promise<T> {
  let value: { readonly of: T } | undefined;
  await until(
    what,
    nothing,
    async () => {
      value = { of: await attempt() };
      return true;
    },
    timeout,
  );
  return (value as { readonly of: T }).of;
}
