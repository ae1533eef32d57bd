/** Lists pods and their containers from the cached pods. */
import type { RequestContext } from '../http/route.ts';
import type { KubeObject } from '../cluster/client/kube-object.ts';
import { visitInSlices } from '../runtime/slice.ts';
import { memoKeyOf, type StoredObject } from '../cluster/cache/stored-object.ts';
import type { ListPods, LogContainer, LogPod } from './stores/pods/source.ts';
import type { Catalogue } from '../cluster/catalogue/catalogue.ts';
import { decodeObject, readFromCache } from '../cluster/catalogue/read-cache.ts';

type Source = Pick<Catalogue, 'find' | 'acquire'>;

interface ContainerStatus {
  readonly name: string;
  readonly restartCount?: number;
  readonly state?: { readonly terminated?: object };
  readonly lastState?: { readonly terminated?: object };
}

interface Pod extends KubeObject {
  readonly spec?: Readonly<
    Partial<Record<'initContainers' | 'containers' | 'ephemeralContainers', readonly { readonly name: string }[]>>
  >;
  readonly status?: {
    readonly phase?: string;
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly ephemeralContainerStatuses?: readonly ContainerStatus[];
  };
}

const memoKey = memoKeyOf('containers with logs');

/** Returns the containers of a core/v1 Pod; init containers come first, because they ran first. */
function containersOf(object: StoredObject<unknown>): readonly LogContainer[] {
  const { spec = {}, status = {} } = decodeObject(object) as Pod;
  const statuses = new Map(
    [status.initContainerStatuses, status.containerStatuses, status.ephemeralContainerStatuses]
      .flatMap((all) => all ?? [])
      .map((one) => [one.name, one]),
  );
  const isOver = status.phase === 'Succeeded' || status.phase === 'Failed';
  return [spec.initContainers, spec.containers, spec.ephemeralContainers]
    .flatMap((all) => all ?? [])
    .map(({ name }) => {
      const known = statuses.get(name);
      return {
        name,
        restarts: known?.restartCount ?? 0,
        hasPrevious: known?.lastState?.terminated !== undefined,
        isOver: isOver || known?.state?.terminated !== undefined,
      };
    });
}

const logPod = (object: StoredObject<unknown>): LogPod => ({
  namespace: object.namespace,
  name: object.name,
  createdAt: object.createdAt,
  containers: () => object.memoize(memoKey, containersOf),
});

/** Calls `visit` for each cached pod. Throws 503 if pods are not cached. */
export async function visitPods(
  catalogue: Source,
  context: Pick<RequestContext, 'signal'>,
  visit: (object: StoredObject<unknown>) => void,
): Promise<void> {
  const entry = await catalogue.find('pods', context.signal);
  await readFromCache(catalogue, entry, context, (store) => visitInSlices(store.snapshot(), context, visit));
}

export const podLister =
  (catalogue: Source): ListPods =>
  async (wanted, signal) => {
    const found: LogPod[] = [];
    await visitPods(catalogue, { signal }, (object) => {
      if (wanted(object.namespace, object.name)) found.push(logPod(object));
    });
    return found;
  };
