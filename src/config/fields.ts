/** Field types that sections of the configuration share. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { parseBytes, parseDuration } from '../runtime/duration.ts';

/** Maximum duration: ten years. Dates that are computed with this duration stay valid. */
const maxDuration = '87600h';

/** A Go duration in the file, parsed to milliseconds. */
export const duration = (fallback: string, min = '1s', max = maxDuration) =>
  z
    .string({
      error: ({ input }) =>
        `must be a duration such as "${fallback}"${typeof input === 'number' ? ', with a unit and in quotes' : ''}`,
    })
    .meta({ title: 'duration' })
    .default(fallback)
    .transform((text, context) => {
      const value = parseDuration(text);
      if (value === undefined || value < (parseDuration(min) ?? 0) || value > (parseDuration(max) ?? 0)) {
        context.addIssue({
          code: 'custom',
          message: `must be a duration from ${min} to ${max}, such as "${fallback}"`,
        });
        return z.NEVER;
      }
      return value;
    });

/** A Kubernetes quantity in the file, parsed to bytes. */
export const bytes = (fallback: string) =>
  z
    .string()
    .meta({ title: 'quantity' })
    .default(fallback)
    .transform((text, context) => {
      const value = parseBytes(text);
      if (value !== undefined) return value;
      context.addIssue({ code: 'custom', message: `must be a quantity such as "${fallback}"` });
      return z.NEVER;
    });

const isPEM = (text: string): boolean => {
  try {
    return new X509Certificate(text).ca;
  } catch {
    return false;
  }
};

export const caCertificate = z
  .string()
  .refine(isPEM, 'must be a CA certificate in PEM format')
  .optional()
  .describe('The only trusted CA, in PEM format. Default: the CAs of Node.js');

export const secretKeyRef = z.strictObject({
  name: z.string().min(1).describe('Name of the Secret in the namespace of the release'),
  key: z.string().min(1).describe('Key in the data of the Secret'),
});

/** Runs a refinement even if other parts of the value are invalid, so that all problems are reported at once. */
export const anyObject = {
  when: ({ value }: { value: unknown }): boolean =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
};

export const anyList = { when: ({ value }: { value: unknown }): boolean => Array.isArray(value) };

export const unique =
  <K extends string>(key: K, label: string) =>
  (items: Partial<Record<K, unknown>>[], context: z.RefinementCtx): void => {
    const seen = new Set<unknown>();
    for (const [index, item] of items.entries()) {
      const name = item?.[key];
      if (typeof name !== 'string') continue;
      if (seen.has(name)) context.addIssue({ code: 'custom', path: [index], message: `duplicate ${label} "${name}"` });
      seen.add(name);
    }
  };
