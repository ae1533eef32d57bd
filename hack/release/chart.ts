/**
 * The chart as an archive that `helm push` and `helm install` accept, with the descriptions of the API in its folder
 * `api`.
 */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseDocument, stringify } from 'yaml';
import { items, section } from './changelog.ts';
import { file, tree } from './files.ts';
import { architectures } from './oci.ts';
import type { Release } from './release.ts';
import { tarGzip, text, type Entry } from './tar.ts';

/** Returns the API descriptions without the folder of examples, because the descriptions already contain them. */
export const descriptions = (path: string, root: string): Entry[] =>
  tree(path, join(root, 'api'), (one) => basename(one) !== 'examples');

export function chart({ root, version, image, source, commit }: Release): Promise<Buffer> {
  const folder = join(root, 'charts/platform-apiserver');
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

  const metadata = parseDocument(read('Chart.yaml'));
  const platforms = architectures.map((architecture) => `linux/${architecture}`);
  const annotations: Record<string, string> = {
    'artifacthub.io/images': stringify([{ name: 'platform-apiserver', image: `${image}:${version}`, platforms }]),
    'artifacthub.io/prerelease': String(version.includes('-')),
  };
  const changes = items(section(read('CHANGELOG.md'), version) ?? '');
  if (changes.length > 0) annotations['artifacthub.io/changes'] = stringify(changes);
  if (source !== undefined) {
    metadata.set('home', source);
    metadata.set('sources', [`${source}/tree/${commit}`]);
    annotations['artifacthub.io/links'] = stringify([
      { name: 'Documentation', url: `${source}/blob/v${version}/docs/README.md` },
    ]);
  }
  for (const [key, value] of Object.entries(annotations)) metadata.setIn(['annotations', key], value);

  const values = parseDocument(read('values.yaml'));
  values.setIn(['image', 'repository'], image);

  const name = 'platform-apiserver';
  return tarGzip([
    ...tree(name, folder, (path) => !['Chart.yaml', 'values.yaml'].includes(basename(path))),
    text(`${name}/Chart.yaml`, metadata.toString({ lineWidth: 0 })),
    text(`${name}/values.yaml`, values.toString({ lineWidth: 0 })),
    file(`${name}/LICENSE`, join(root, 'LICENSE')),
    ...descriptions(`${name}/api`, root),
  ]);
}
