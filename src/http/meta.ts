/** metav1: what objects, lists and refusals have in common. */
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

/** What an object is. `apiVersion`: if it is always the same. */
export const typeMeta = <const K extends string, const V extends string = string>(kind: K, apiVersion?: V) => ({
  kind: oneOf(kind),
  apiVersion: (apiVersion === undefined ? text : oneOf(apiVersion)) as Schema<V>,
});

/** An object with nothing in it. */
export const nothing = named('Nothing', object({}));

/** Beside what could be found. */
export const partialSchema = named(
  'Partial',
  described('This is not everything', object({ reason: described('Why, for people', text) })),
);

const cause = named(
  'StatusCause',
  object({}, { reason: text, message: text, field: described('Such as spec.groups[0]', text) }),
);

export const statusDetailsSchema = named(
  'StatusDetails',
  object(
    {},
    {
      name: text,
      group: text,
      kind: described('The resource, or the kind, that it is about', text),
      uid: text,
      causes: list(cause),
      retryAfterSeconds: count,
    },
  ),
);

const statusMeta = named(
  'StatusMeta',
  object({}, { continue: described('To go on with a list that has expired', text) }),
);

const status = {
  ...typeMeta('Status', 'v1'),
  metadata: statusMeta,
};

/** Of one that failed. */
export const statusSchema = named(
  'Status',
  object(
    {
      ...status,
      status: oneOf('Failure'),
      message: described('What was wrong, and what would be right', text),
      reason: described('The same in a word, for programs', text),
      code: described('The status of the answer', integer),
    },
    { details: statusDetailsSchema },
  ),
);

/** RFC 6749 section 5.2. */
export const oauthErrorSchema = named(
  'OAuthError',
  object({ error: oneOf(...oauthErrorCodes), error_description: described('For people', text) }),
);

/** Where there is nothing to show. */
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
        { from: text, value: described('Anything', anything) },
      ),
    ),
  ),
);

/** There is more of it in Kubernetes' own schema. */
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
        selfLink: described('Its path in the API that has it', text),
      },
    ),
  ),
);

const listMeta = named('ListMeta', object({}, { resourceVersion: described('What to watch from', text) }));

/** A list of /kapis, under this name. `kind`: of its items, if that is known. */
export const listSchema = <S extends Schema>(name: string, item: S, kind?: string) =>
  named(
    name,
    object({
      kind: kind === undefined ? text : oneOf(`${kind}List`),
      apiVersion: text,
      metadata: listMeta,
      items: list(item),
      totalItems: described('Before paging', count),
    }),
  );
