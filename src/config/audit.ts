/** `audit`: what is written down of each request, and where to (audit.k8s.io/v1, as kube-apiserver's --audit-policy-file has it). */
import { z } from 'zod';
import { anyObject, bytes, caCertificate, duration, secretKeyRef } from './fields.ts';
import { isHTTPURL } from './https-url.ts';

const level = z.enum(['None', 'Metadata', 'Request', 'RequestResponse']);
const stage = z.enum(['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic']);
const texts = z.array(z.string()).default([]);

const rule = z.strictObject({
  level: level.describe('Of the requests that it matches; None: nothing is written'),
  users: texts.describe('Whose requests; everybody unless stated'),
  userGroups: texts.describe('Members of any of these'),
  verbs: texts.describe('Such as get, list and create; all unless stated'),
  resources: z
    .array(
      z.strictObject({
        group: z.string().default('').describe('Of the API; "" is the core group'),
        resources: texts.describe('By their plural; all of the group unless stated'),
        resourceNames: texts.describe('Names of objects; all unless stated'),
      }),
    )
    .default([])
    .describe('As in "pods", "pods/log", "*", "*/scale", "pods/*"; of the group "" in the core API'),
  namespaces: texts.describe('"" for what is in none'),
  nonResourceURLs: texts.describe('Paths such as "/oauth/token" and "/healthz*"'),
  omitStages: z.array(stage).default([]).describe('At which nothing is written, beside those of the policy'),
  omitManagedFields: z.boolean().optional().describe('The same as that of the policy, for this rule'),
});

const probes = ['/healthz*', '/livez*', '/readyz*'];

const policy = z
  .strictObject({
    apiVersion: z.literal('audit.k8s.io/v1').optional(),
    kind: z.literal('Policy').optional(),
    metadata: z.looseObject({}).optional(),
    level: level.optional().describe('Of every request but probes, written when it is answered: in the place of rules'),
    rules: z
      .array(rule)
      .min(1, 'must have one: the first that matches a request decides')
      .optional()
      .describe('The first that matches a request decides; nothing is written where none does'),
    omitStages: z
      .array(stage)
      .optional()
      .describe('At which nothing is written; without rules by default RequestReceived, else none'),
    omitManagedFields: z.boolean().default(false).describe('Of the objects that are written down'),
  })
  .refine(({ level: everywhere, rules }) => everywhere === undefined || rules === undefined, {
    ...anyObject,
    path: ['level'],
    error: 'must not stand beside rules: each rule has its own',
  })
  .transform(({ level: everywhere = 'Metadata', rules, omitStages, omitManagedFields }) => ({
    rules: rules ?? [rule.parse({ level: 'None', nonResourceURLs: probes }), rule.parse({ level: everywhere })],
    omitStages: omitStages ?? (rules === undefined ? ['RequestReceived' as const] : []),
    omitManagedFields,
  }));

export const audit = z.strictObject({
  policy: policy.prefault({}).describe('A level for everything, or rules as in a Policy of audit.k8s.io/v1'),
  log: z
    .strictObject({
      path: z
        .string()
        .default('-')
        .refine(
          (text) => text === '-' || text.startsWith('/'),
          'must be "-" for the standard output, or an absolute path',
        )
        .describe('A file, or - for the standard output'),
      maxSize: bytes('100Mi').describe('A file that has grown to this is followed by a new one'),
      maxBackups: z.int().min(1).max(1000).default(10).describe('Files kept beside the one that is written'),
    })
    .nullable()
    .prefault({})
    .describe('Where events are written as lines of JSON; null: nowhere'),
  webhook: z
    .strictObject({
      url: z
        .string()
        .refine(isHTTPURL, 'must be an http or https URL without a name and password, which belong into tokenRef')
        .describe('Gets EventLists of audit.k8s.io/v1 by POST'),
      caCertificate,
      tokenRef: secretKeyRef.optional().describe('Sent to it as a bearer'),
      batchMaxSize: z.int().min(1).max(10_000).default(400).describe('Events of one request to it'),
      batchMaxWait: duration('1s', '10ms', '1m').describe('How long an event waits for others'),
      bufferSize: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(10_000)
        .describe('Events that may wait; more are dropped and counted'),
    })
    .nullable()
    .default(null)
    .describe('Who is sent events; null: nobody'),
});

export type AuditSettings = z.output<typeof audit>;
export type AuditPolicy = AuditSettings['policy'];
export type AuditLevel = z.output<typeof level>;
export type AuditStage = z.output<typeof stage>;
