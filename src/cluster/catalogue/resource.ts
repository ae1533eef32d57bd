/**
 * Types of resources and kinds. The handlers work on any resource; `resources/kinds/` has a file for each kind with
 * specific fields.
 */
import type { z } from 'zod';
import type { KubeObject } from '../client/kube-object.ts';
import type { Store } from '../cache/store.ts';
import type { StoredObject } from '../cache/stored-object.ts';

export interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  /** Plural name in lower case. */
  readonly resource: string;
}

/** The fields of metav1.APIResource. */
export interface ApiResource {
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  readonly kind: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

/** The fields of metav1.TableColumnDefinition. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

/** Parameter of /kapis that is specific to a kind. */
export interface KindFilter<F> {
  readonly description: string;
  matches(object: StoredObject<F>, text: string): boolean;
}

/**
 * Parameter of /kapis that names an object with a label selector, such as a Service. Selected objects and the named
 * object are in the same namespace.
 */
export interface SelectedBy {
  readonly description: string;
  /** Plural name of the selecting resource. */
  readonly resource: string;
  /** Labels that a selected object must have. An object without labels selects nothing. */
  readonly labels: (object: KubeObject) => Readonly<Record<string, string>>;
}

/** `F` is the type of the values that are extracted from each object in addition to its bytes and metadata. */
export interface ResourceDefinition<F> {
  readonly kind: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** Names under which kubectl lists this resource together with others. */
  readonly categories?: readonly string[];
  readonly namespaced: boolean;
  /**
   * Resource whose objects are read. Callers need the right to read this resource. /kapis returns the objects
   * unchanged.
   */
  readonly underlying: GroupVersionResource;
  /** Name on /kapis and /apis. On /apis the objects have this apiVersion. */
  readonly served: GroupVersionResource;
  /** Schemas of the members of an object other than metadata, by name. Each member is optional. */
  readonly schema?: Readonly<Record<string, z.ZodType>>;
  fields(object: KubeObject): F;
  /** Large member of the status that `fields` does not read. It is not decoded. */
  readonly unreadStatus?: string;
  readonly columns: readonly Column[];
  /** Returns the cells of a table in the order of the columns. `now`: milliseconds since the epoch. */
  cells(object: StoredObject<F>, now: number): readonly string[];
  /** Field labels that /apis supports: the field labels of the kind in Kubernetes. */
  readonly fieldLabels: readonly string[];
  fieldLabel(object: StoredObject<F>, label: string): string;
  /** Values of the `status` parameter of /kapis. A kind without such values does not have the parameter. */
  readonly statuses: readonly string[];
  /** Returns one or several statuses of an object. */
  statusOf(object: StoredObject<F>): string | readonly string[];
  /** Filters by name of the parameter. */
  readonly filters: Readonly<Record<string, KindFilter<F>>>;
  /** Selecting resources by name of the parameter. */
  readonly selectedBy?: Readonly<Record<string, SelectedBy>>;
}

/** Specific fields and parameters of a kind. */
export interface Kind<F> extends Pick<
  ResourceDefinition<F>,
  'fields' | 'statuses' | 'statusOf' | 'filters' | 'selectedBy'
> {
  readonly group: string;
  /** Plural name of the resource. */
  readonly resource: string;
}

/** Resource that is served from a cache, which an upstream watch keeps current. */
export interface Resource<F> {
  readonly definition: ResourceDefinition<F>;
  readonly store: Store<F>;
  /**
   * Signal that is aborted when the cache is stopped. Client watches of the resource then end, and the clients list
   * again.
   */
  readonly ended?: AbortSignal;
  /** Returns true once the first list is complete. */
  hasSynced(): boolean;
  /** Resolves when the first list is complete. Throws the signal's reason if the signal is aborted first. */
  waitForSync(signal: AbortSignal): Promise<void>;
  /** Resolves to true once the store has reached a resourceVersion, and to false if the signal is aborted first. */
  reach(resourceVersion: number, signal: AbortSignal): Promise<boolean>;
  /**
   * Resolves when it is known whether the history of the store is complete after a resourceVersion. Also resolves when
   * the signal is aborted, or if kube-apiserver does not respond within a few seconds.
   */
  recall(resourceVersion: number, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when the store contains every change that the cluster had accepted before the call. Throws KubeError if
   * the cluster cannot be reached, and the signal's reason if the signal is aborted.
   */
  confirm(signal: AbortSignal): Promise<void>;
  /** Does the same as `confirm`, but for a single object. `namespace` is '' for a cluster-scoped object. */
  confirmObject(namespace: string, name: string, signal: AbortSignal): Promise<void>;
}

/**
 * Returns the path of a collection. The path is limited to the namespace unless that is ''. The namespace is encoded,
 * so that text from a caller is always a single segment.
 */
export const collectionPath = ({ group, version, resource }: GroupVersionResource, namespace = ''): string =>
  `${group === '' ? `/api/${version}` : `/apis/${group}/${version}`}/${namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`}${resource}`;

export const groupVersion = ({ group, version }: { readonly group: string; readonly version: string }): string =>
  group === '' ? version : `${group}/${version}`;
