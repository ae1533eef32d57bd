import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';

/** Fields of snapshot.storage.k8s.io/v1 VolumeSnapshot that are used here. */
interface VolumeSnapshot extends KubeObject {
  readonly spec?: {
    readonly volumeSnapshotClassName?: string;
    readonly source?: { readonly persistentVolumeClaimName?: string };
  };
  readonly status?: { readonly readyToUse?: boolean };
}

interface VolumeSnapshotFields {
  readonly status: 'creating' | 'ready' | 'deleting';
  readonly volumeSnapshotClassName: string;
  readonly persistentVolumeClaimName: string;
}

export const volumesnapshots: Kind<VolumeSnapshotFields> = {
  group: 'snapshot.storage.k8s.io',
  resource: 'volumesnapshots',
  fields(object) {
    const { metadata, spec = {}, status = {} } = object as VolumeSnapshot;
    const ready = status.readyToUse === true ? 'ready' : 'creating';
    return {
      status: metadata.deletionTimestamp === undefined ? ready : 'deleting',
      volumeSnapshotClassName: spec.volumeSnapshotClassName ?? '',
      persistentVolumeClaimName: spec.source?.persistentVolumeClaimName ?? '',
    };
  },
  statuses: ['creating', 'ready', 'deleting'],
  statusOf: ({ fields: { status } }) => status,
  filters: {
    volumeSnapshotClassName: {
      description: 'spec.volumeSnapshotClassName',
      matches: ({ fields: { volumeSnapshotClassName } }, text) => volumeSnapshotClassName === text,
    },
    persistentVolumeClaimName: {
      description: 'source PersistentVolumeClaim',
      matches: ({ fields: { persistentVolumeClaimName } }, text) => persistentVolumeClaimName === text,
    },
  },
};
