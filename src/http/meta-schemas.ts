/** Schemas of metav1: the common parts of objects, lists and errors. */
import { oauthErrorCodes } from '../runtime/errors.ts';
import {
  anything,
  count,
  described,
  integer,
  list,
  mapOf,
  named,
  object,
  oneOf,
  open,
  text,
  time,
  type Schema,
} from './schema.ts';

/** Kind and version of an object. `apiVersion` is undefined if it varies. */
export const typeMeta = <const K extends string, const V extends string = string>(kind: K, apiVersion?: V) => ({
  kind: oneOf(kind),
  apiVersion: (apiVersion === undefined ? text : oneOf(apiVersion)) as Schema<V>,
});

/** An empty object. */
export const nothing = named('Nothing', object({}));

/** Property that marks a response as incomplete. */
export const partialSchema = named(
  'Partial',
  described('Present if the response is incomplete', object({ reason: described('Human-readable reason', text) })),
);

const cause = named(
  'StatusCause',
  object({}, { reason: text, message: text, field: described('Field or parameter, such as `spec.groups[0]`', text) }),
);

export const statusDetailsSchema = named(
  'StatusDetails',
  object(
    {},
    {
      name: text,
      group: text,
      kind: described('Resource or kind of the object', text),
      uid: text,
      causes: list(cause),
      retryAfterSeconds: count,
    },
  ),
);

const statusMeta = named(
  'StatusMeta',
  object({}, { continue: described('Token that continues a list after the previous token has expired', text) }),
);

const status = {
  ...typeMeta('Status', 'v1'),
  metadata: statusMeta,
};

/** Status of a failed request. */
export const statusSchema = named(
  'Status',
  object(
    {
      ...status,
      status: oneOf('Failure'),
      message: described('Human-readable problem, and what is accepted', text),
      reason: described('Machine-readable reason', text),
      code: described('HTTP status of the response', integer),
    },
    { details: statusDetailsSchema },
  ),
);

/** RFC 6749 section 5.2. */
export const oauthErrorSchema = named(
  'OAuthError',
  object({ error: oneOf(...oauthErrorCodes), error_description: described('Human-readable problem', text) }),
);

/** Status of a request that succeeded and returns no object. */
export const doneSchema = named(
  'Done',
  object({ ...status, status: oneOf('Success') }, { details: statusDetailsSchema }),
);

/** RFC 6902. */
export const jsonPatchSchema = named(
  'JSONPatch',
  list(
    named(
      'JSONPatchOperation',
      object(
        { op: oneOf('add', 'remove', 'replace', 'move', 'copy', 'test'), path: text },
        { from: text, value: described('Any JSON value', anything) },
      ),
    ),
  ),
);

/** The part of Kubernetes' ObjectMeta that clients of /kapis use. */
export const objectMetaSchema = named(
  'ObjectMeta',
  open(
    object(
      { name: text },
      {
        namespace: text,
        uid: text,
        resourceVersion: text,
        generation: count,
        creationTimestamp: time,
        deletionTimestamp: time,
        labels: mapOf(text),
        annotations: mapOf(text),
        selfLink: described('Path of the object in the Kubernetes API', text),
      },
    ),
  ),
);

const listMeta = named('ListMeta', object({}, { resourceVersion: described('Version from which to watch', text) }));

/** Returns the schema of a list on /kapis. `kind` is the kind of the items, if the kind is known. */
export const listSchema = <S extends Schema>(name: string, item: S, kind?: string) =>
  named(
    name,
    object({
      kind: kind === undefined ? text : oneOf(`${kind}List`),
      apiVersion: text,
      metadata: listMeta,
      items: list(item),
      totalItems: described('Number of matching objects on all pages', count),
    }),
  );
