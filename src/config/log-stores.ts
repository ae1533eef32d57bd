/** Where logs are read. */
import { z } from 'zod';
import { anyObject, bytes, caCertificate, secretKeyRef } from './fields.ts';

const pods = z.strictObject({
  maxBytesPerContainer: bytes('64Mi').describe(
    'Of one container a query reads no more than this, and says so; well above the size at which kubelet rotates a log',
  ),
});

const storeURL = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && [username, password, search, hash].join('') === '';
};

const store = {
  url: z
    .string()
    .refine(storeURL, 'must be an http or https URL without user, query and fragment')
    .describe('Where its API is; requests go below the path'),
  caCertificate,
  basicAuth: z
    .strictObject({
      username: z
        .string()
        .min(1)
        .regex(/^[^:]*$/, 'must have no ":"')
        .describe('As whom it is asked'),
      passwordRef: secretKeyRef.describe('The password'),
    })
    .optional()
    .describe('Of RFC 7617; by default nobody'),
  tokenRef: secretKeyRef.optional().describe('Sent to it as a bearer'),
};

const oneCredential = {
  ...anyObject,
  error: 'must not have both of basicAuth and tokenRef',
};
const mayHave = ({ basicAuth, tokenRef }: { basicAuth?: unknown; tokenRef?: unknown }): boolean =>
  basicAuth === undefined || tokenRef === undefined;

const searchStore = (indexPrefix: string) =>
  z
    .strictObject({
      ...store,
      indexPrefix: z
        .string()
        .max(200)
        .regex(/^[a-z0-9][-a-z0-9._]*$/, 'must be the beginning of the name of an index')
        .default(indexPrefix)
        .describe('Of the indices <prefix>-YYYY.MM.DD'),
      timeField: z
        .string()
        .regex(/^[@A-Za-z_][\w.@]*$/, 'must be the name of a field')
        .default('@timestamp')
        .describe(
          "The date by which records are found and sorted: fluent-bit's @timestamp; Vector's timestamp or time",
        ),
    })
    .refine(mayHave, oneCredential);

const label = (usual: string) =>
  z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a label')
    .default(usual)
    .describe('The name of the label');

const lokiStore = z
  .strictObject({
    ...store,
    tenant: z
      .string()
      .max(150)
      .regex(/^[-\w.!*'()|]+$/, 'must be the name of a tenant')
      .optional()
      .describe('Sent as X-Scope-OrgID; by default nothing is, as of a Loki without tenants'),
    labels: z
      .strictObject({ namespace: label('namespace'), pod: label('pod'), container: label('container') })
      .prefault({})
      .describe('The labels of streams by which a container is known'),
    textField: z
      .string()
      .min(1)
      .max(200)
      .regex(/^[^\p{Cc}"`\\]+$/u, 'must be the name of a field')
      .optional()
      .describe('Of lines that are JSON objects, the field that has the text; by default the line is the text'),
  })
  .refine(mayHave, oneCredential);

const stores = ['pods', 'opensearch', 'elasticsearch', 'loki'] as const;

export const logging = z
  .strictObject({
    store: z
      .enum(stores)
      .default('pods')
      .describe(
        "pods: what the nodes still keep of the pods' logs, read through kube-apiserver; another one has a section of its name",
      ),
    pods: pods.optional(),
    opensearch: searchStore('ks-whizard-logging').optional(),
    elasticsearch: searchStore('ks-logstash-log').optional(),
    loki: lokiStore.optional(),
  })
  .superRefine((value, context) => {
    const { store: name } = value;
    if (stores.includes(name) && name !== 'pods' && value[name] === undefined)
      context.addIssue({ code: 'custom', path: [name], message: `is missing: it says where the store "${name}" is` });
  }, anyObject);

export type LoggingSettings = z.output<typeof logging>;
export type SearchSettings = NonNullable<LoggingSettings['opensearch']>;
export type LokiSettings = NonNullable<LoggingSettings['loki']>;
export type StoreSettings = Pick<SearchSettings, 'url' | 'caCertificate' | 'basicAuth' | 'tokenRef'>;

/** What the store of the configuration needs from Secrets, and where in its section it is named. */
export function credentialsOf(settings: LoggingSettings) {
  if (settings.store === 'pods') return [];
  const { basicAuth, tokenRef } = settings[settings.store] ?? {};
  return [
    ...(basicAuth === undefined
      ? []
      : [{ path: [settings.store, 'basicAuth', 'passwordRef'], ref: basicAuth.passwordRef }]),
    ...(tokenRef === undefined ? [] : [{ path: [settings.store, 'tokenRef'], ref: tokenRef }]),
  ];
}
