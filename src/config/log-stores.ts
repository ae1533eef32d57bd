/** `logging`: the log store, and a section of settings for each kind of log store. */
import { z } from 'zod';
import { anyObject, bytes, caCertificate, secretKeyRef } from './fields.ts';
import { isHTTPURL } from './https-url.ts';

const podsStore = z.strictObject({
  maxBytesPerContainer: bytes('64Mi').describe(
    'Of one container a query reads no more than this, and says so; well above the size at which kubelet rotates a log',
  ),
});

const storeURL = (text: string): boolean => {
  const { search, hash } = URL.parse(text) ?? {};
  return isHTTPURL(text) && search === '' && hash === '';
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

/** The settings of each kind of log store, under the name that selects it. `src/logs/stores` opens a store of each kind. */
const sections = {
  pods: podsStore.prefault({}),
  opensearch: searchStore('ks-whizard-logging'),
  elasticsearch: searchStore('ks-logstash-log'),
  loki: lokiStore,
};

export type LogStoreName = keyof typeof sections;
export type LogStoreSettings<Name extends LogStoreName> = z.output<(typeof sections)[Name]>;
export type RemoteStoreSettings = Pick<LogStoreSettings<'loki'>, 'url' | 'caCertificate' | 'basicAuth' | 'tokenRef'>;

const storeNames = Object.keys(sections) as LogStoreName[];

export const logging = z
  .strictObject({
    store: z
      .enum(storeNames)
      .default('pods')
      .describe(
        "pods: what the nodes still keep of the pods' logs, read through kube-apiserver; another one has a section of its name",
      ),
    ...z.strictObject(sections).partial().shape,
  })
  .superRefine((value, context) => {
    const { store: name } = value;
    if (storeNames.includes(name) && value[name] === undefined)
      context.addIssue({ code: 'custom', path: [name], message: `is missing: it says where the store "${name}" is` });
  }, anyObject);

export type LoggingSettings = z.output<typeof logging>;

/** Returns the references to Secrets of the selected store, with their paths below `logging`. */
export function credentialsOf(settings: LoggingSettings) {
  const { store: name } = settings;
  const { basicAuth, tokenRef } = { basicAuth: undefined, tokenRef: undefined, ...settings[name] };
  return [
    ...(basicAuth === undefined ? [] : [{ path: [name, 'basicAuth', 'passwordRef'], ref: basicAuth.passwordRef }]),
    ...(tokenRef === undefined ? [] : [{ path: [name, 'tokenRef'], ref: tokenRef }]),
  ];
}
