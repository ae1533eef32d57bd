/** The links of the documents lead somewhere: to a file of the repository, and to a heading in it. */
import { expect, test } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const documents = [
  'README.md',
  'CHANGELOG.md',
  ...readdirSync(join(root, 'docs')).map((file) => `docs/${file}`),
].filter((file) => file.endsWith('.md'));

const withoutCode = (text: string): string => text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, 'code');

/** As GitHub makes them of headings. */
const anchorsIn = (file: string): Set<string> =>
  new Set(
    [...readFileSync(join(root, file), 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );

test.each(documents)('%s', (file) => {
  const links = [...withoutCode(readFileSync(join(root, file), 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, link = '']) => link,
  );
  const broken = links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? file : join(dirname(file), path);
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && !anchorsIn(target).has(anchor);
  });
  expect(broken).toEqual([]);
});
