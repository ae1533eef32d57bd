/** What the account service answers, and what it takes. */
import type { LoginOutcome } from '../accounts/logins/history.ts';
import { shortestPassword } from '../accounts/passwords/rules.ts';
import { longestPassword } from '../accounts/passwords/passwords.ts';
import { doneSchema, listSchema, nothing, objectMetaSchema, typeMeta } from '../http/meta.ts';
import {
  anyObject,
  count,
  described,
  eitherOf,
  flag,
  list,
  mapOf,
  named,
  object,
  oneOf,
  open,
  text,
  time,
  type Schema,
  type TypeOf,
} from '../http/schema.ts';
import { apiVersion } from './user-store.ts';

const upTo = (length: number) => text.max(length);

const identity = named(
  'UserIdentity',
  object({
    provider: described('Name of the identity provider in the cluster configuration object', text),
    subject: described('What the provider knows the user by and never gives to another', text),
  }),
);

const condition = named(
  'Condition',
  object(
    {
      type: text,
      status: oneOf('True', 'False', 'Unknown'),
      lastTransitionTime: time,
      reason: described('Why it is so, in one word for programs', text),
      message: described('Why it is so, for people', text),
    },
    { observedGeneration: count },
  ),
);

const userFields = {
  displayName: described('How the user is called by people', upTo(256)),
  email: described('The user may log in with it in the place of the name', upTo(254)),
  groups: described('Role bindings name them', list(text)),
  state: described('Who is Disabled cannot log in', oneOf('Active', 'Disabled')),
  passwordChangeRequired: described('The user may do nothing but change the password', flag),
  identities: described('Who the user is at identity providers', list(identity)),
};

/** manifests/crds has the same, and kube-apiserver judges by that. */
const userSpec = named('UserSpec', object({}, userFields));

const userStatus = named('UserStatus', object({}, { conditions: list(condition), lastLoginTime: time }));

/** With the parameter `fields` there may be less in it. */
export const userSchema = named(
  'User',
  object({ ...typeMeta('User', apiVersion), metadata: objectMetaSchema }, { spec: userSpec, status: userStatus }),
);

/** Of a deletion: done, or under way. */
export const deletedUserSchema = named('DeletedUser', eitherOf(doneSchema, userSchema));

export const userListSchema = listSchema('UserList', userSchema, 'User');

/** The same as somebody writes it: its type may be left out of a patch, and its metadata may have what kube-apiserver takes. */
/** RFC 7386: what is null goes. */
const orNull = (fields: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, schema.nullable()]));

export const userPatchSchema = named(
  'UserPatch',
  object(
    {},
    {
      apiVersion: oneOf(apiVersion),
      kind: oneOf('User'),
      metadata: anyObject,
      spec: named('UserSpecPatch', open(object({}, orNull(userFields)))),
    },
  ),
);

export const deleteOptionsSchema = named(
  'DeleteOptions',
  described('meta.k8s.io/v1 DeleteOptions, as kube-apiserver takes them', anyObject),
);

export const passwordSchema = named(
  'Password',
  object(
    {
      password: described(
        '8 characters to 1,024 bytes, and not a common one',
        text.meta({ minLength: shortestPassword, maxLength: longestPassword, format: 'password' }),
      ),
    },
    { currentPassword: described('Needed for your own', text.meta({ format: 'password' })) },
  ),
);

const sessionSchema = named(
  'Session',
  object({
    ...typeMeta('Session', apiVersion),
    metadata: named(
      'SessionMeta',
      object({ name: described('By which it is ended', text) }, { creationTimestamp: time }),
    ),
    spec: named(
      'SessionSpec',
      object(
        { userName: text, clientID: text, createdAt: time, expiresAt: time },
        { scope: text, sourceIP: text, userAgent: text },
      ),
    ),
    status: named(
      'SessionStatus',
      object(
        {
          phase: described(
            'Pending: a login that waits for its code to be redeemed; Revoked: its tokens are refused',
            oneOf('Pending', 'Active', 'Revoked'),
          ),
        },
        { lastUsedAt: described('When it was refreshed last, or the login', time) },
      ),
    ),
    current: described('It is that of the request', flag),
  }),
);

export type ShownSession = TypeOf<typeof sessionSchema>;

export const sessionListSchema = named(
  'SessionList',
  object({ ...typeMeta('SessionList', apiVersion), metadata: nothing, items: list(sessionSchema), totalItems: count }),
);

const outcomes: Schema<LoginOutcome> = oneOf('LoggedIn', 'WrongPassword', 'NoPassword', 'Disabled', 'Limited');

const loginRecordSchema = named(
  'LoginRecord',
  object({
    ...typeMeta('LoginRecord', apiVersion),
    time,
    success: flag,
    reason: described('LoggedIn, or why not: NoPassword has none set, Limited came too often', outcomes),
    client: described('The name of the OAuth client', text),
    sourceIP: text,
    userAgent: text,
  }),
);

export const loginRecordListSchema = named(
  'LoginRecordList',
  object({
    ...typeMeta('LoginRecordList', apiVersion),
    metadata: nothing,
    items: list(loginRecordSchema),
    totalItems: described('Of all pages', count),
  }),
);

const subject = named(
  'KubernetesUserInfo',
  described(
    "authentication.k8s.io's UserInfo: as whom RBAC knows you",
    object({ username: text, groups: list(text) }, { uid: text, extra: mapOf(list(text)) }),
  ),
);

const person = named(
  'PlatformUser',
  described('Of a user of the platform', object({ passwordChangeRequired: flag }, { displayName: text, email: text })),
);

export const whoAmISchema = named(
  'WhoAmI',
  object({
    ...typeMeta('WhoAmI', apiVersion),
    metadata: nothing,
    status: named('WhoAmIStatus', object({ userInfo: subject }, { user: person })),
  }),
);
