/** Users of the cluster and of the configuration, in one store for list queries. */
import { iamAPIVersion, iamGroup, iamVersion } from '../config/names.ts';
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { User, Users } from '../accounts/directory/users.ts';
import { ManagedFields } from '../cluster/cache/managed-fields.ts';
import { Store } from '../cluster/cache/store.ts';
import { storeObject, type StoredObject } from '../cluster/cache/stored-object.ts';
import type { KindFilter, ResourceDefinition } from '../cluster/catalogue/resource.ts';

export const base = `/kapis/${iamAPIVersion}`;
const served = { group: iamGroup, version: iamVersion, resource: 'users' };

interface UserFields {
  readonly state: string;
  readonly groups: readonly string[];
  /** E-mail address in lower case, or ''. */
  readonly email: string;
}

const states = ['Active', 'Disabled'];

const inGroup: KindFilter<UserFields> = {
  description: 'Group of the user',
  matches: ({ fields }, text) => fields.groups.includes(text),
};

export const usersDefinition: ResourceDefinition<UserFields> = {
  kind: 'User',
  singular: 'user',
  shortNames: [],
  namespaced: false,
  underlying: served,
  served,
  fields: ({ spec = {} }: User) => ({
    state: spec.state ?? 'Active',
    groups: spec.groups ?? [],
    email: spec.email?.toLowerCase() ?? '',
  }),
  columns: [],
  cells: () => [],
  fieldLabels: [],
  fieldLabel: () => '',
  statuses: states,
  statusOf: ({ fields }) => fields.state,
  filters: {
    group: inGroup,
    // ks-apiserver has the same parameter.
    ingroup: { ...inGroup, description: 'Same as group' },
    email: {
      description: 'E-mail address of the user, ignoring case',
      matches: ({ fields }, text) => fields.email === text.toLowerCase(),
    },
  },
};

/**
 * Returns a configured user as a User object. A configured user is not stored in the cluster, so the object has no
 * version and no creation time.
 */
export function objectOf(account: Account): User {
  const { username: name, uid, displayName, email, groups, active, passwordChangeRequired } = account;
  return {
    apiVersion: iamAPIVersion,
    kind: 'User',
    metadata: { name, uid, resourceVersion: '0', annotations: { 'iam.platform.io/source': 'configuration' } },
    spec: {
      ...(displayName === undefined ? {} : { displayName }),
      ...(email === undefined ? {} : { email }),
      groups,
      state: active ? 'Active' : 'Disabled',
      ...(passwordChangeRequired ? { passwordChangeRequired } : {}),
    },
  };
}

export class UserStore {
  readonly #directory: Directory;
  readonly #users: Users;
  readonly #managedFields = new ManagedFields();
  readonly #stored = new WeakMap<object, StoredObject<UserFields>>();
  #latest: { readonly store: Store<UserFields>; readonly sources: readonly object[] } | undefined;

  constructor({ directory, users }: { readonly directory: Directory; readonly users: Users }) {
    this.#directory = directory;
    this.#users = users;
  }

  get(username: string): StoredObject<UserFields> | undefined {
    const account = this.#directory.configured(username);
    if (account !== undefined) return this.#store(account, () => objectOf(account));
    const user = this.#users.get(username);
    return user && this.#store(user, () => user);
  }

  /** The store of the current users. The object stays the same until the users change. */
  get store(): Store<UserFields> {
    const configured = [...this.#directory.configuredAccounts()];
    const users = this.#users.list().filter(({ metadata }) => this.#directory.configured(metadata.name) === undefined);
    const sources: readonly object[] = [...configured, ...users];
    const latest = this.#latest;
    if (latest?.sources.length === sources.length && sources.every((one, index) => one === latest.sources[index]))
      return latest.store;
    const objects = [
      ...configured.map((account) => this.#store(account, () => objectOf(account))),
      ...users.map((user) => this.#store(user, () => user)),
    ];
    const store = new Store<UserFields>();
    store.replace(objects, Math.max(1, ...objects.map(({ resourceVersion }) => resourceVersion)));
    this.#latest = { store, sources };
    return store;
  }

  /** Caches the stored object of `source`, which is immutable. */
  #store(source: object, make: () => User): StoredObject<UserFields> {
    let stored = this.#stored.get(source);
    if (stored === undefined) {
      const object = { ...make(), apiVersion: iamAPIVersion, kind: 'User' };
      stored = storeObject(object, Buffer.from(JSON.stringify(object)), {
        selfLink: ({ metadata }) => `${base}/users/${metadata.name}`,
        fields: (user) => usersDefinition.fields(user),
        managedFields: this.#managedFields,
      });
      this.#stored.set(source, stored);
    }
    return stored;
  }
}
