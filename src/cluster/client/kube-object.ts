/** The fields of metav1.OwnerReference. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

/** The fields of metav1.ObjectMeta that this server reads. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
}

/** Any object of the Kubernetes API. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Returns `namespace/name`, or only the name of a cluster-scoped object (client-go MetaNamespaceKeyFunc). */
export const namespacedName = ({ namespace = '', name }: Pick<ObjectMeta, 'namespace' | 'name'>): string =>
  namespace === '' ? name : `${namespace}/${name}`;

/** Returns the media type of metav1.PartialObjectMetadata or its list. */
export const metadataAs = (kind: string): string => `application/json;as=${kind};g=meta.k8s.io;v=v1`;

/** Headers of a request for the metadata of an object. */
export const metadataHeaders = { accept: metadataAs('PartialObjectMetadata') };
