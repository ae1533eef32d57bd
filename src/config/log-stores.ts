/** `logging`: the log store, with a section for each kind of store. */
import { z } from 'zod';
import { anyObject, bytes, caCertificate, secretKeyRef } from './fields.ts';
import { isHTTPURL } from './https-url.ts';

const podsStore = z.strictObject({
  maxBytesPerContainer: bytes('64Mi').describe(
    'Maximum bytes of logs that a query reads per container. Set this well above the size at which kubelet rotates logs',
  ),
});

const storeURL = (text: string): boolean => {
  const { search, hash } = URL.parse(text) ?? {};
  return isHTTPURL(text) && search === '' && hash === '';
};

const store = {
  url: z
    .string()
    .refine(storeURL, 'must be an http or https URL without username, password, query and fragment')
    .describe('URL of the API. Paths of requests are appended to this URL'),
  caCertificate,
  basicAuth: z
    .strictObject({
      username: z
        .string()
        .min(1)
        .regex(/^[^:]*$/, 'must not contain ":"')
        .describe('Username'),
      passwordRef: secretKeyRef.describe('Password'),
    })
    .optional()
    .describe('HTTP Basic authentication (RFC 7617). Default: none'),
  tokenRef: secretKeyRef.optional().describe('Bearer token. Default: none'),
};

const oneCredential = {
  ...anyObject,
  error: 'must not have both basicAuth and tokenRef',
};
const hasAtMostOneCredential = ({ basicAuth, tokenRef }: { basicAuth?: unknown; tokenRef?: unknown }): boolean =>
  basicAuth === undefined || tokenRef === undefined;

const searchStore = (indexPrefix: string) =>
  z
    .strictObject({
      ...store,
      indexPrefix: z
        .string()
        .max(200)
        .regex(/^[a-z0-9][-a-z0-9._]*$/, 'must be a valid prefix of index names')
        .default(indexPrefix)
        .describe('Prefix of the indices <prefix>-YYYY.MM.DD'),
      timeField: z
        .string()
        .regex(/^[@A-Za-z_][\w.@]*$/, 'must be a field name')
        .default('@timestamp')
        .describe(
          'Field with the time of a record, which selects and sorts records: @timestamp for fluent-bit, timestamp or time for Vector',
        ),
    })
    .refine(hasAtMostOneCredential, oneCredential);

const label = (fallback: string) =>
  z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a label name')
    .default(fallback)
    .describe('Name of the label');

const lokiStore = z
  .strictObject({
    ...store,
    tenant: z
      .string()
      .max(150)
      .regex(/^[-\w.!*'()|]+$/, 'must be a tenant name')
      .optional()
      .describe('Tenant, sent as X-Scope-OrgID. Default: none, for Loki without tenants'),
    labels: z
      .strictObject({ namespace: label('namespace'), pod: label('pod'), container: label('container') })
      .prefault({})
      .describe('Stream labels that identify a container'),
    textField: z
      .string()
      .min(1)
      .max(200)
      .regex(/^[^\p{Cc}"`\\]+$/u, 'must be a field name')
      .optional()
      .describe('Field with the text in lines that are JSON objects. Default: the whole line is the text'),
  })
  .refine(hasAtMostOneCredential, oneCredential);

/** Settings of each kind of log store, by the name that selects it. `src/logs/stores` opens the stores. */
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
        'Log store. pods: logs that the nodes still keep, read through kube-apiserver. Every other store requires the section with its name',
      ),
    ...z.strictObject(sections).partial().shape,
  })
  .superRefine((value, context) => {
    const { store: name } = value;
    if (storeNames.includes(name) && value[name] === undefined)
      context.addIssue({ code: 'custom', path: [name], message: `is required for the log store "${name}"` });
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
