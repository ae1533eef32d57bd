/** Both kinds of users as objects, in a store that the list language reads. */
import { iamAPIVersion, iamGroup, iamVersion } from '../config/names.ts';
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { User, Users } from '../accounts/directory/users.ts';
import { ManagedFields } from '../cluster/cache/managed-fields.ts';
import { Store } from '../cluster/cache/store.ts';
import { storeObject, type StoredObject } from '../cluster/cache/stored-object.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';

export const base = `/kapis/${iamAPIVersion}`;
const served = { group: iamGroup, version: iamVersion, resource: 'users' };

interface UserFields {
  readonly state: string;
  readonly groups: readonly string[];
}

const states = ['Active', 'Disabled'];

export const usersDefinition: ResourceDefinition<UserFields> = {
  kind: 'User',
  singular: 'user',
  shortNames: [],
  namespaced: false,
  underlying: served,
  served,
  fields: ({ spec = {} }: User) => ({ state: spec.state ?? 'Active', groups: spec.groups ?? [] }),
  columns: [],
  cells: () => [],
  fieldLabels: [],
  fieldLabel: () => '',
  statuses: states,
  statusOf: ({ fields }) => fields.state,
  filters: {
    group: {
      description: 'A group of the user',
      matches: ({ fields }, text) => fields.groups.includes(text),
    },
  },
};

/** A configured user as such an object. It is stored nowhere, so it has no version and no time. */
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
  #made: { readonly store: Store<UserFields>; readonly of: readonly object[] } | undefined;

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

  /** The same store as long as they are the same users. */
  get store(): Store<UserFields> {
    const configured = [...this.#directory.configuredAccounts()];
    const users = this.#users.list().filter(({ metadata }) => this.#directory.configured(metadata.name) === undefined);
    const of: readonly object[] = [...configured, ...users];
    const made = this.#made;
    if (made?.of.length === of.length && of.every((one, index) => one === made.of[index])) return made.store;
    const objects = [
      ...configured.map((account) => this.#store(account, () => objectOf(account))),
      ...users.map((user) => this.#store(user, () => user)),
    ];
    const store = new Store<UserFields>();
    store.replace(objects, Math.max(1, ...objects.map(({ resourceVersion }) => resourceVersion)));
    this.#made = { store, of };
    return store;
  }

  /** `of` is never altered, so what is made of it stays. */
  #store(of: object, make: () => User): StoredObject<UserFields> {
    let stored = this.#stored.get(of);
    if (stored === undefined) {
      const object = { ...make(), apiVersion: iamAPIVersion, kind: 'User' };
      stored = storeObject(object, Buffer.from(JSON.stringify(object)), {
        selfLink: ({ metadata }) => `${base}/users/${metadata.name}`,
        fields: (user) => usersDefinition.fields(user),
        managedFields: this.#managedFields,
      });
      this.#stored.set(of, stored);
    }
    return stored;
  }
}
