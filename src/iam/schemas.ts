/** Request and response bodies of the account service. */
import { iamAPIVersion } from '../config/names.ts';
import type { LoginOutcome } from '../accounts/logins/history.ts';
import { minPasswordLength } from '../accounts/passwords/rules.ts';
import { maxPasswordBytes } from '../accounts/passwords/passwords.ts';
import { doneSchema, listSchema, nothing, objectMetaSchema, typeMeta } from '../http/meta-schemas.ts';
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

const upTo = (length: number) => text.max(length);

const identity = named(
  'UserIdentity',
  object({
    provider: described('Name of the identity provider in the cluster configuration object', text),
    subject: described('Identifier of the user at the provider; never reassigned', text),
  }),
);

const condition = named(
  'Condition',
  object(
    {
      type: text,
      status: oneOf('True', 'False', 'Unknown'),
      lastTransitionTime: time,
      reason: described('Machine-readable reason', text),
      message: described('Human-readable reason', text),
    },
    { observedGeneration: count },
  ),
);

const userFields = {
  displayName: described('Human-readable name', upTo(256)),
  email: described('E-mail address, which can be used instead of the username to log in', upTo(254)),
  groups: described('Groups for role bindings', list(text)),
  state: described('A `Disabled` user cannot log in, and tokens of the user are rejected', oneOf('Active', 'Disabled')),
  passwordChangeRequired: described('Whether the user must change the password before any other request', flag),
  identities: described('Identities with which the user logs in at identity providers', list(identity)),
};

/** Matches the CustomResourceDefinition in manifests/crds, by which kube-apiserver validates users. */
const userSpec = named('UserSpec', object({}, userFields));

const userStatus = named('UserStatus', object({}, { conditions: list(condition), lastLoginTime: time }));

/** The properties are optional, because the parameter `fields` can omit them. */
export const userSchema = named(
  'User',
  object({ ...typeMeta('User', iamAPIVersion), metadata: objectMetaSchema }, { spec: userSpec, status: userStatus }),
);

/** Status of a completed deletion, or the user while finalizers remain. */
export const deletedUserSchema = named('DeletedUser', eitherOf(doneSchema, userSchema));

export const userListSchema = listSchema('UserList', userSchema, 'User');

/** Allows null for each property, which removes it (RFC 7386). */
const orNull = (fields: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, schema.nullable()]));

export const userPatchSchema = named(
  'UserPatch',
  object(
    {},
    {
      apiVersion: oneOf(iamAPIVersion),
      kind: oneOf('User'),
      metadata: anyObject,
      spec: named('UserSpecPatch', open(object({}, orNull(userFields)))),
    },
  ),
);

export const deleteOptionsSchema = named('DeleteOptions', described('`DeleteOptions` of meta.k8s.io/v1', anyObject));

export const passwordSchema = named(
  'Password',
  object(
    {
      password: described(
        'At least 8 characters, at most 1,024 bytes; common passwords and names of the user are rejected with 422',
        text.meta({ minLength: minPasswordLength, maxLength: maxPasswordBytes, format: 'password' }),
      ),
    },
    { currentPassword: described('Required to change your own password', text.meta({ format: 'password' })) },
  ),
);

const sessionSchema = named(
  'Session',
  object({
    ...typeMeta('Session', iamAPIVersion),
    metadata: named(
      'SessionMeta',
      object({ name: described('Identifier with which the session is revoked', text) }, { creationTimestamp: time }),
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
            '`Pending`: the authorization code is not exchanged yet; `Revoked`: the tokens of the session are rejected',
            oneOf('Pending', 'Active', 'Revoked'),
          ),
        },
        { lastUsedAt: described('Time of the last refresh, or of the login if the tokens were never refreshed', time) },
      ),
    ),
    current: described('Whether this request uses the session', flag),
  }),
);

export type ShownSession = TypeOf<typeof sessionSchema>;

export const sessionListSchema = named(
  'SessionList',
  object({
    ...typeMeta('SessionList', iamAPIVersion),
    metadata: nothing,
    items: list(sessionSchema),
    totalItems: count,
  }),
);

const outcomes: Schema<LoginOutcome> = oneOf('LoggedIn', 'WrongPassword', 'NoPassword', 'Disabled', 'Limited');

const loginRecordSchema = named(
  'LoginRecord',
  object({
    ...typeMeta('LoginRecord', iamAPIVersion),
    time,
    success: flag,
    reason: described('`NoPassword`: no password is set; `Limited`: too many earlier failures', outcomes),
    client: described('Name of the OAuth client', text),
    sourceIP: text,
    userAgent: text,
  }),
);

export const loginRecordListSchema = named(
  'LoginRecordList',
  object({
    ...typeMeta('LoginRecordList', iamAPIVersion),
    metadata: nothing,
    items: list(loginRecordSchema),
    totalItems: described('Number of records without `limit`', count),
  }),
);

const subject = named(
  'KubernetesUserInfo',
  described(
    'Identity with which requests are authorized, as `UserInfo` of authentication.k8s.io',
    object({ username: text, groups: list(text) }, { uid: text, extra: mapOf(list(text)) }),
  ),
);

const person = named(
  'PlatformUser',
  described('Account of a platform user', object({ passwordChangeRequired: flag }, { displayName: text, email: text })),
);

export const whoAmISchema = named(
  'WhoAmI',
  object({
    ...typeMeta('WhoAmI', iamAPIVersion),
    metadata: nothing,
    status: named('WhoAmIStatus', object({ userInfo: subject }, { user: person })),
  }),
);
