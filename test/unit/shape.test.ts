/**
 * Adding one of these takes one file or folder, one line in an index and one block of the configuration schema, so no other file of src
 * contains its name.
 */
import { expect, test } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';

const logStore = ['config/log-stores.ts', 'logs/stores/index.ts'];

/** `places`: the files and folders of src that contain the name. */
const additions: readonly (readonly [what: string, name: RegExp, places: readonly string[]])[] = [
  ['log store loki', /loki/i, [...logStore, 'logs/stores/loki.ts', 'logs/stores/loki/']],
  // OpenSearch and Elasticsearch share a query language, and the folder of its client.
  ['log store opensearch', /opensearch/i, [...logStore, 'logs/stores/opensearch.ts', 'logs/stores/search/']],
  ['log store elasticsearch', /elasticsearch/i, [...logStore, 'logs/stores/elasticsearch.ts', 'logs/stores/search/']],
];

const sources = globSync('**/*.ts', { cwd: 'src' }).map((file) => ({
  file,
  text: readFileSync(`src/${file}`, 'utf8'),
}));

const isIn = (file: string, place: string): boolean =>
  file === place || (place.endsWith('/') && file.startsWith(place));

test.each(additions)(
  'only its own files, its index and its section of the configuration name the %s',
  (_, name, places) => {
    const files = sources.filter(({ file, text }) => name.test(file) || name.test(text)).map(({ file }) => file);
    expect({
      elsewhere: files.filter((file) => !places.some((place) => isIn(file, place))),
      missing: places.filter((place) => !files.some((file) => isIn(file, place))),
    }).toEqual({ elsewhere: [], missing: [] });
  },
);
