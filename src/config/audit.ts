/**
 * `audit`: selects the requests to record, and the destination of their events (audit.k8s.io/v1, like
 * --audit-policy-file of kube-apiserver).
 */
import { z } from 'zod';
import { anyObject, bytes, caCertificate, duration, secretKeyRef } from './fields.ts';
import { isHTTPURL } from './https-url.ts';

const level = z.enum(['None', 'Metadata', 'Request', 'RequestResponse']);
const stage = z.enum(['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic']);
const texts = z.array(z.string()).default([]);

const rule = z.strictObject({
  level: level.describe('Level for matching requests. None records nothing'),
  users: texts.describe('Users whose requests match. Default: all'),
  userGroups: texts.describe('Groups whose members match. Default: all'),
  verbs: texts.describe('Verbs, such as get, list and create. Default: all'),
  resources: z
    .array(
      z.strictObject({
        group: z.string().default('').describe('API group. "" is the core group'),
        resources: texts.describe('Plural names of resources. Default: all of the group'),
        resourceNames: texts.describe('Names of objects. Default: all'),
      }),
    )
    .default([])
    .describe('Resources, such as "pods", "pods/log", "*", "*/scale" and "pods/*"'),
  namespaces: texts.describe('Namespaces. "" matches requests without a namespace'),
  nonResourceURLs: texts.describe('Paths such as "/oauth/token" and "/healthz*"'),
  omitStages: z.array(stage).default([]).describe('Stages that are not recorded, in addition to those of the policy'),
  omitManagedFields: z.boolean().optional().describe('Overrides omitManagedFields of the policy'),
});

const probes = ['/healthz*', '/livez*', '/readyz*'];

const policy = z
  .strictObject({
    apiVersion: z.literal('audit.k8s.io/v1').optional(),
    kind: z.literal('Policy').optional(),
    metadata: z.looseObject({}).optional(),
    level: level.optional().describe('Level for all requests except probes, instead of rules'),
    rules: z
      .array(rule)
      .min(1, 'must have at least one rule; the first rule that matches a request applies')
      .optional()
      .describe('The first rule that matches a request applies'),
    omitStages: z
      .array(stage)
      .optional()
      .describe('Stages that are not recorded. Default: none if there are rules, otherwise RequestReceived'),
    omitManagedFields: z.boolean().default(false).describe('Omits metadata.managedFields of recorded objects'),
  })
  .refine(({ level: single, rules }) => single === undefined || rules === undefined, {
    ...anyObject,
    path: ['level'],
    error: 'must not be combined with rules: each rule has its own level',
  })
  .transform(({ level: single = 'Metadata', rules, omitStages, omitManagedFields }) => ({
    rules: rules ?? [rule.parse({ level: 'None', nonResourceURLs: probes }), rule.parse({ level: single })],
    omitStages: omitStages ?? (rules === undefined ? ['RequestReceived' as const] : []),
    omitManagedFields,
  }));

export const audit = z.strictObject({
  policy: policy.prefault({}).describe('One level for all requests, or rules as in a Policy of audit.k8s.io/v1'),
  log: z
    .strictObject({
      path: z
        .string()
        .default('-')
        .refine((text) => text === '-' || text.startsWith('/'), 'must be "-" for standard output, or an absolute path')
        .describe('Path of a file, or - for standard output'),
      maxSize: bytes('100Mi').describe('Size at which the file is rotated'),
      maxBackups: z.int().min(1).max(1000).default(10).describe('Number of rotated files to keep'),
    })
    .nullable()
    .prefault({})
    .describe('Destination of events, one JSON object per line. null disables the destination'),
  webhook: z
    .strictObject({
      url: z
        .string()
        .refine(isHTTPURL, 'must be an http or https URL without username and password; use tokenRef')
        .describe('URL to which EventLists of audit.k8s.io/v1 are posted'),
      caCertificate,
      tokenRef: secretKeyRef.optional().describe('Bearer token for the webhook'),
      batchMaxSize: z.int().min(1).max(10_000).default(400).describe('Maximum events per request'),
      batchMaxWait: duration('1s', '10ms', '1m').describe('Maximum wait for a batch to fill'),
      bufferSize: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(10_000)
        .describe('Maximum events that wait for delivery. Further events are dropped and counted'),
    })
    .nullable()
    .default(null)
    .describe('Webhook that receives events. null disables the webhook'),
});

export type AuditSettings = z.output<typeof audit>;
export type AuditPolicy = AuditSettings['policy'];
export type AuditLevel = z.output<typeof level>;
export type AuditStage = z.output<typeof stage>;
