import { badRequest } from '../runtime/errors.ts';
import { recordOf } from '../http/request/json-body.ts';

/** Returns whether a value is a JSON pointer (RFC 6901). */
const isPointer = (value: unknown): boolean => typeof value === 'string' && /^(?:\/|$)/.test(value);

/**
 * Validates a JSON patch (RFC 6902 section 4). Throws 400 with the invalid operation. kube-apiserver cannot perform
 * this validation: it closes the connection without a response if a patch replaces the whole object without a value.
 */
export function assertJsonPatch(value: unknown): void {
  if (!Array.isArray(value)) throw badRequest('a JSON patch must be a list of operations (RFC 6902)');
  for (const [index, one] of (value as unknown[]).entries()) {
    const problem = problemOf(recordOf(one) ?? {});
    if (problem !== undefined) throw badRequest(`operation ${index} of the JSON patch: ${problem}`);
  }
}

function problemOf(operation: Readonly<Record<string, unknown>>): string | undefined {
  const { op, path, from } = operation;
  if (!isPointer(path)) return 'the member "path" must be a JSON pointer, such as /spec/displayName';
  switch (op) {
    case 'remove':
      return undefined;
    case 'add':
    case 'replace':
    case 'test':
      return Object.hasOwn(operation, 'value') ? undefined : `${op} requires the member "value"`;
    case 'move':
    case 'copy':
      return isPointer(from) ? undefined : `${op} requires the member "from" with a JSON pointer`;
    default:
      return 'the member "op" must be add, remove, replace, move, copy or test';
  }
}
