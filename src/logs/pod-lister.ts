/** What the copy of the pods says of them for their logs: their containers, and whose they are. */
import type { RequestContext } from '../http/route.ts';
import type { KubeObject } from '../cluster/client/kube-object.ts';
import { visitInSlices } from '../runtime/slice.ts';
import { memoryOf, type StoredObject } from '../cluster/cache/stored-object.ts';
import type { ListPods, LogContainer, LogPod } from './stores/pods/source.ts';
import type { Catalogue } from '../cluster/catalogue/catalogue.ts';
import { decoded, fromCopy } from '../cluster/catalogue/use.ts';

type Source = Pick<Catalogue, 'find' | 'use'>;

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

const memory = memoryOf('containers with logs');

/** core/v1 Pod: init containers come first, as they ran. */
function containersOf(object: StoredObject<unknown>): readonly LogContainer[] {
  const { spec = {}, status = {} } = decoded(object) as Pod;
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
  containers: () => object.remembered(memory, containersOf),
});

/** All pods, as they are now. Throws 503 where there is no copy of them. */
export async function visitPods(
  catalogue: Source,
  context: Pick<RequestContext, 'signal'>,
  visit: (object: StoredObject<unknown>) => void,
): Promise<void> {
  const entry = await catalogue.find('pods', context.signal);
  await fromCopy(catalogue, entry, context, (store) => visitInSlices(store.snapshot(), context, visit));
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
