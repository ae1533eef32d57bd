/** Types of resources and kinds. The handlers work on any resource; `resources/kinds/` has a file for each kind with its own fields. */
import type { z } from 'zod';
import type { KubeObject } from '../client/kube-object.ts';
import type { Store } from '../cache/store.ts';
import type { StoredObject } from '../cache/stored-object.ts';

export interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  /** Plural, in lower case. */
  readonly resource: string;
}

/** metav1.APIResource. */
export interface ApiResource {
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  readonly kind: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
}

/** metav1.TableColumnDefinition. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

/** A parameter of /kapis that this kind alone has. */
export interface KindFilter<F> {
  readonly description: string;
  matches(object: StoredObject<F>, text: string): boolean;
}

/** A parameter of /kapis that names an object, in the namespace of each object asked for, which selects by labels. */
export interface SelectedBy {
  readonly description: string;
  /** The plural of what selects. */
  readonly resource: string;
  /** What is selected has all of these; none: it selects nothing. */
  readonly labels: (object: KubeObject) => Readonly<Record<string, string>>;
}

/** `F` is what is kept of every object beside its bytes and the metadata that all have. */
export interface ResourceDefinition<F> {
  readonly kind: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  /** What is read, and what a caller must be allowed to read. Its objects are served as they are on /kapis. */
  readonly underlying: GroupVersionResource;
  /** What it is called on /kapis and /apis; on /apis the objects get this apiVersion. */
  readonly served: GroupVersionResource;
  /** Of what is in an object beside its metadata, by name; every one may be missing. */
  readonly schema?: Readonly<Record<string, z.ZodType>>;
  fields(object: KubeObject): F;
  readonly columns: readonly Column[];
  /** A table's cells in the order of the columns. `now`: milliseconds since the epoch. */
  cells(object: StoredObject<F>, now: number): readonly string[];
  /** The field labels that /apis takes: Kubernetes' own for this kind. */
  readonly fieldLabels: readonly string[];
  fieldLabel(object: StoredObject<F>, label: string): string;
  /** What the `status` parameter of /kapis may be, and which one, or which ones, an object has. None: there is no such parameter. */
  readonly statuses: readonly string[];
  statusOf(object: StoredObject<F>): string | readonly string[];
  /** By the parameter's name. */
  readonly filters: Readonly<Record<string, KindFilter<F>>>;
  /** By the parameter's name. */
  readonly selectedBy?: Readonly<Record<string, SelectedBy>>;
}

/** What a kind has beside what all objects have. */
export interface Kind<F> extends Pick<
  ResourceDefinition<F>,
  'fields' | 'statuses' | 'statusOf' | 'filters' | 'selectedBy'
> {
  readonly group: string;
  /** Plural. */
  readonly resource: string;
}

/** A resource that is answered from a copy which one upstream watch keeps current. */
export interface Resource<F> {
  readonly definition: ResourceDefinition<F>;
  readonly store: Store<F>;
  /** Aborted when the copy is given up: its watches end, and their clients begin again. */
  readonly ended?: AbortSignal;
  /** The first list is complete. */
  hasSynced(): boolean;
  /** Resolves when `hasSynced`; throws the signal's reason when that is aborted before. */
  waitForSync(signal: AbortSignal): Promise<void>;
  /** Resolves with true when the store has reached a resourceVersion, with false when the signal is aborted before. */
  reach(resourceVersion: number, signal: AbortSignal): Promise<boolean>;
  /**
   * Resolves when it is known whether the store's history reaches back to a resourceVersion, when nobody can tell within seconds, and
   * when the signal is aborted.
   */
  recall(resourceVersion: number, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when the store is no older than the cluster was when this was called. Throws KubeError when the cluster cannot be
   * asked, and the signal's reason.
   */
  confirm(signal: AbortSignal): Promise<void>;
  /** The same for a single object. `namespace` is '' at cluster scope. */
  confirmObject(namespace: string, name: string, signal: AbortSignal): Promise<void>;
}

/**
 * The path of a collection in the API that has it; of one namespace's part if that is not ''. What a caller says is a namespace stays
 * one segment of it.
 */
export const collectionPath = ({ group, version, resource }: GroupVersionResource, namespace = ''): string =>
  `${group === '' ? `/api/${version}` : `/apis/${group}/${version}`}/${namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`}${resource}`;

export const groupVersion = ({ group, version }: { readonly group: string; readonly version: string }): string =>
  group === '' ? version : `${group}/${version}`;
