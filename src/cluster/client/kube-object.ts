/** metav1.OwnerReference. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

/** metav1.ObjectMeta, as far as this server reads it. */
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

/** `namespace/name`, or the name alone at cluster scope (client-go MetaNamespaceKeyFunc). */
export const keyOf = ({ metadata: { namespace, name } }: KubeObject): string =>
  namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;

/** The media type of metav1.PartialObjectMetadata or its list. */
export const metadataAs = (kind: string): string => `application/json;as=${kind};g=meta.k8s.io;v=v1`;

/** The headers of a request for the metadata of an object. */
export const metadataHeaders = { accept: metadataAs('PartialObjectMetadata') };
