/** Derives requests from the descriptions of the routes, so that new routes are included automatically. */
import { parameterOf } from '../../../src/docs/openapi/json-schema.ts';
import type { ParameterDescription, Route } from '../../../src/http/route.ts';

export interface Case {
  /** Path with query. */
  readonly path: string;
  readonly accept: string;
  /** True for a stream that ends after `timeoutSeconds`. */
  readonly isWatch: boolean;
  /** True if the response contains all objects of its list. */
  readonly isWholeList: boolean;
}

type Query = readonly (readonly [name: string, value: string])[];

/** Values of parameters whose schema lists no values. */
const values: Readonly<Record<string, readonly string[]>> = {
  fields: ['metadata.name'],
  limit: ['257'],
  page: ['2'],
  size: ['1000'],
  sortBy: ['name', '.metadata.labels.none'],
  alias: ['alias 1', 'none'],
  labelSelector: ['app.kubernetes.io/part-of=platform', 'none'],
  operation: ['statistics', 'histogram', 'export'],
  timeout: ['30s'],
  resourceVersion: ['0'],
};

const valuesOf = (parameter: ParameterDescription): readonly string[] => {
  const { name, schema } = parameterOf(parameter);
  const known = values[name];
  if (known !== undefined) return known;
  if (Array.isArray(schema['enum'])) return schema['enum'].map(String);
  if (schema['type'] === 'boolean') return ['true'];
  return schema['type'] === 'integer' ? ['1'] : ['none'];
};

/** Parameters that change the shape of a body. Requests with all combinations of these parameters are sent. */
const shapes = ['fields', 'managedFields', 'pretty', 'limit', 'operation', 'size'];
const ofStreams = new Set(['text/event-stream', 'application/x-ndjson', 'application/jsonl']);
/** Parameters that make a response endless, and parameters that only watches accept. */
const streams = new Set(['watch', 'follow', 'sendInitialEvents', 'allowWatchBookmarks', 'timeoutSeconds', 'continue']);
const watch: Query = [
  ['watch', 'true'],
  ['sendInitialEvents', 'true'],
  ['resourceVersionMatch', 'NotOlderThan'],
  ['allowWatchBookmarks', 'true'],
  ['timeoutSeconds', '1'],
];

const metadataTypes = ['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList'].map(
  (kind) => `application/json;as=${kind};v=v1;g=meta.k8s.io`,
);

function combined(parameters: readonly ParameterDescription[]): Query[] {
  return parameters.reduce<Query[]>(
    (queries, parameter) => [
      ...queries,
      ...queries.flatMap((query) => valuesOf(parameter).map((value) => [...query, [parameter.name, value] as const])),
    ],
    [[]],
  );
}

/** Returns values for a path parameter. */
export type NamesOf = (path: string, parameter: string) => readonly string[];

/**
 * Selection of the cases of a route. `each`: every parameter, and every combination of the parameters that shape the
 * body. `shapes`: only these combinations, for routes that list objects. `pairs`: fewer combinations, in which each
 * pair of values still occurs.
 */
export type Extent = 'each' | 'shapes' | 'pairs';

/** Returns the cases of a GET route. The result is the same in every run. */
export function casesOf({ path, parameters = [], responses = {} }: Route, names: NamesOf, extent: Extent): Case[] {
  const isFull = extent === 'each';
  const inQuery = parameters.filter((one) => one.in === 'query');
  const has = (name: string): boolean => inQuery.some((one) => one.name === name);
  const described = Object.values(responses).flatMap(({ content = {} }) => Object.keys(content));
  const types = new Set([
    ...(described.length === 0 ? ['application/json'] : described),
    ...(path.startsWith('/apis/') ? metadataTypes : []),
  ]);
  if (!isFull && (!has('pretty') || path.endsWith('/:name'))) return [];
  const reads = [
    ...combined(inQuery.filter(({ name }) => shapes.includes(name))),
    ...inQuery
      .filter(({ name }) => isFull && has('pretty') && !shapes.includes(name) && !streams.has(name))
      .flatMap((one) => valuesOf(one).map((value): Query => [[one.name, value]])),
  ];
  const watches = has('watch')
    ? [watch, ...(has('fields') ? [[...watch, ['fields', 'metadata.name'] as const]] : [])]
    : [];
  const rowsOf = (queries: readonly Query[], isWatch: boolean): Row[] =>
    queries.flatMap((query) =>
      [...types]
        .filter((type) => (isWatch ? type !== 'application/yaml' : !ofStreams.has(type)))
        .map((accept) => ({ query, accept, isWatch })),
    );
  const lists = path.includes('/watch/') ? [] : rowsOf(reads, false);
  const rows = [...(extent === 'pairs' ? pairwise(lists) : lists), ...rowsOf(watches, true)];
  return pathsOf(path, names).flatMap((concrete) =>
    rows.map(({ query, ...row }) => {
      const text = new URLSearchParams(Object.fromEntries(query)).toString();
      const isWholeList = !row.isWatch && query.every(([name]) => shapes.includes(name) && name !== 'limit');
      return { ...row, isWholeList, path: text === '' ? concrete : `${concrete}?${text}` };
    }),
  );
}

/** A request to a route, without the path. */
interface Row {
  readonly query: Query;
  readonly accept: string;
  readonly isWatch: boolean;
}

/**
 * Returns each pair of values in a row. The values are the media type, and whether each parameter that shapes the body
 * is set.
 */
function pairsIn({ query, accept }: Row): string[] {
  const given = new Map(query);
  const all = [accept, ...shapes.map((name) => `${name}=${given.get(name) ?? ''}`)];
  return all.flatMap((first, n) => all.slice(n + 1).map((second) => `${first} ${second}`));
}

/** Selects rows until they contain every pair. Each selected row is the row with the most new pairs. */
function pairwise(rows: readonly Row[]): Row[] {
  const missing = new Set(rows.flatMap(pairsIn));
  const newIn = (row: Row): number => pairsIn(row).filter((pair) => missing.has(pair)).length;
  const taken: Row[] = [];
  while (missing.size > 0) {
    const next = rows.reduce((best, row) => (newIn(row) > newIn(best) ? row : best));
    for (const pair of pairsIn(next)) missing.delete(pair);
    taken.push(next);
  }
  return taken;
}

/** Returns one path for each combination of names. */
const pathsOf = (path: string, names: NamesOf): string[] =>
  path
    .slice(1)
    .split('/')
    .reduce<string[]>(
      (paths, segment) => {
        const name = /^[:*](.+)$/.exec(segment)?.[1];
        const all = name === undefined ? [segment] : names(path, name);
        return paths.flatMap((before) => all.map((one) => `${before}/${one}`));
      },
      [''],
    );
