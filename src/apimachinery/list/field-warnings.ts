/**
 * Warnings for the parameters `fields` and `fieldSelector` if they name a field that the schema of the resource does
 * not have.
 */
import type { Response } from 'express';
import { nearest } from '../../config/error-map.ts';
import type { ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import type { FieldSchema, FieldSchemas } from '../../cluster/field-schemas.ts';
import type { RequestContext } from '../../http/route.ts';
import { StatusError } from '../../runtime/errors.ts';
import { parseFieldTerms } from './filters.ts';
import { parsePaths } from './projection.ts';

const maxWarnings = 8;
const maxPathLength = 256;

/** Returns the schema of the innermost elements of nested arrays; other schemas are returned unchanged. */
const innermost = (schema: FieldSchema): FieldSchema =>
  schema.element === undefined ? schema : innermost(schema.element);

/**
 * Returns the path without escapes up to the unknown segment, and the closest field; undefined if the schema has the
 * path.
 */
function unknownField(
  schema: FieldSchema,
  path: readonly string[],
  visitsElements: boolean,
): { readonly field: string; readonly near: string | undefined } | undefined {
  let at: FieldSchema = schema;
  for (const [depth, segment] of path.entries()) {
    const isIndex = /^\d+$/.test(segment);
    if (visitsElements && !isIndex) at = innermost(at);
    if (at.isOpen) return undefined;
    const next = (isIndex ? at.element : undefined) ?? at.members.get(segment) ?? at.additional;
    if (next === undefined) {
      const before = path.slice(0, depth);
      const near = nearest(segment, [...at.members.keys()]);
      return {
        field: [...before, segment].join('.'),
        near: near === undefined ? undefined : [...before, near].join('.'),
      };
    }
    at = next;
  }
  return undefined;
}

const quoted = (field: string): string => `"${field.slice(0, maxPathLength)}"`;

/** A path in the query, and the parameter that contains it. */
interface RequestedPath {
  readonly parameter: 'fields' | 'fieldSelector';
  readonly path: readonly string[];
}

/** Returns the paths in the query. Throws 400 for invalid paths, and for too many paths. */
function requestedPaths(query: URLSearchParams): readonly RequestedPath[] {
  const fields = query.get('fields');
  const selector = query.get('fieldSelector');
  return [
    ...(fields === null ? [] : parsePaths(fields).map((path) => ({ parameter: 'fields', path }) as const)),
    ...(selector === null
      ? []
      : parseFieldTerms(selector).map(({ path }) => ({ parameter: 'fieldSelector', path }) as const)),
  ];
}

/** Returns a warning for each unknown field. Invalid values cause no warning, because the request is refused. */
export function fieldWarnings(schema: FieldSchema, query: URLSearchParams): readonly string[] {
  const warnings = new Set<string>();
  try {
    for (const { parameter, path } of requestedPaths(query)) {
      // Warnings are limited, because each unknown field is compared with all fields of an object.
      if (warnings.size === maxWarnings) break;
      const unknown = unknownField(schema, path, parameter === 'fields');
      if (unknown === undefined) continue;
      const hint = unknown.near === undefined ? '' : `; did you mean ${quoted(unknown.near)}?`;
      warnings.add(`${parameter}: unknown field ${quoted(unknown.field)}${hint}`);
    }
  } catch (error) {
    if (error instanceof StatusError) return [];
    throw error;
  }
  return [...warnings];
}

/**
 * Warns about fields in the query that the schema of the resource does not have. `revision` identifies the version of
 * the CustomResourceDefinition.
 */
export async function warnOfFields(
  schemas: FieldSchemas,
  { kind, underlying }: Pick<ResourceDefinition<never>, 'kind' | 'underlying'>,
  revision: string,
  { res, context: { query, log } }: { readonly res: Response; readonly context: RequestContext },
): Promise<void> {
  if (!query.has('fields') && !query.has('fieldSelector')) return;
  const schema = await schemas.find({ ...underlying, kind, revision }, log);
  if (schema !== undefined) addWarnings(res, fieldWarnings(schema, query));
}

/** Adds headers in the form of kube-apiserver (RFC 7234 section 5.5, code 299), which kubectl prints. */
function addWarnings(res: Response, warnings: readonly string[]): void {
  if (warnings.length === 0) return;
  const texts = warnings.map((text) => text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, String.raw`\$&`));
  res.setHeader(
    'Warning',
    texts.map((text) => `299 - "${text}"`),
  );
}
