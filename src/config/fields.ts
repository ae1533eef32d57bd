/** What the sections of the configuration have in common. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { parseBytes, parseDuration } from '../runtime/duration.ts';

/** Ten years: a time that far ahead is still a date. */
const longest = '87600h';

/** A Go duration in the file, milliseconds in the program. */
export const duration = (fallback: string, least = '1s', most = longest) =>
  z
    .string({
      error: ({ input }) =>
        `must be a duration such as "${fallback}"${typeof input === 'number' ? ', with a unit and in quotes' : ''}`,
    })
    .meta({ title: 'duration' })
    .default(fallback)
    .transform((text, context) => {
      const value = parseDuration(text);
      if (value === undefined || value < (parseDuration(least) ?? 0) || value > (parseDuration(most) ?? 0)) {
        context.addIssue({
          code: 'custom',
          message: `must be a duration from ${least} to ${most}, such as "${fallback}"`,
        });
        return z.NEVER;
      }
      return value;
    });

/** A quantity in the file, so many bytes in the program. */
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
  .refine(isPEM, 'must be the certificate of a CA, in PEM')
  .optional()
  .describe('The only CA that the other side is believed by; by default those that Node knows');

export const secretKeyRef = z.strictObject({
  name: z.string().min(1).describe('A Secret in the namespace of the release'),
  key: z.string().min(1).describe('Of its data'),
});

/** Refinements look at what is there although other parts are wrong, so that all problems are told at once. */
export const anyObject = {
  when: ({ value }: { value: unknown }): boolean =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
};

export const anyList = { when: ({ value }: { value: unknown }): boolean => Array.isArray(value) };

export const unique =
  <K extends string>(key: K, what: string) =>
  (items: Partial<Record<K, unknown>>[], context: z.RefinementCtx): void => {
    const seen = new Set<unknown>();
    for (const [index, item] of items.entries()) {
      const name = item?.[key];
      if (typeof name !== 'string') continue;
      if (seen.has(name)) context.addIssue({ code: 'custom', path: [index], message: `repeats the ${what} "${name}"` });
      seen.add(name);
    }
  };
