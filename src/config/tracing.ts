/** `tracing`: OpenTelemetry traces, like --tracing-config-file of kube-apiserver (TracingConfiguration). */
import { z } from 'zod';
import { caCertificate, secretKeyRef } from './fields.ts';
import { isHTTPURL } from './https-url.ts';

/** Path of OTLP/HTTP for traces, which is appended to the endpoint. */
export const tracesPath = '/v1/traces';

function isEndpoint(text: string): boolean {
  // The text is checked, because a parsed URL does not show an empty query, fragment or user.
  return isHTTPURL(text) && !/[?#@\s]/.test(text) && !text.replace(/\/+$/, '').endsWith(tracesPath);
}

export const tracing = z.strictObject({
  endpoint: z
    .string()
    .default('')
    .refine(
      (text) => text === '' || isEndpoint(text),
      `must be an http or https URL without username, password, query and fragment, and without ${tracesPath}, which the server appends`,
    )
    .describe(
      `URL of an OTLP/HTTP receiver, such as the OpenTelemetry Collector at port 4318. ${tracesPath} is appended. Empty disables tracing`,
    ),
  samplingRatePerMillion: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(0)
    .describe('Number of requests per million whose spans are recorded'),
  trustIncoming: z
    .boolean()
    .default(false)
    .describe(
      'If true, a traceparent header determines the trace and whether its spans are recorded. If false, the span only links to the trace of the caller',
    ),
  caCertificate,
  tokenRef: secretKeyRef.optional().describe('Bearer token for the receiver. Default: none'),
});

export type TracingSettings = z.output<typeof tracing>;
