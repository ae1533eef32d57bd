/** Checks that links in documents lead to existing files and headings, and that diagrams are well-formed. */
import { expect, test } from '@jest/globals';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const documents = globSync(['*.md', '.github/**/*.md', 'docs/**/*.md'], { cwd: root }).toSorted();

const withoutCode = (text: string): string => text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, 'code');

/** Returns the anchor that GitHub generates for a heading. */
const anchorsIn = (file: string): Set<string> =>
  new Set(
    [...readFileSync(join(root, file), 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );

test.each(documents)('the links in %s are valid', (file) => {
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

const flowchartNode = String.raw`\w+(?:\["[^"]+"\]|\[\("[^"]+"\)\]|\{"[^"]+"\})?`;
/** Patterns of the Mermaid statements that documents are allowed to contain, by kind of diagram. */
const statements: Readonly<Record<string, RegExp>> = {
  flowchart: new RegExp(
    String.raw`^(?:subgraph \w+\["[^"]+"\]|end|${flowchartNode}(?: -->(?:\|(?:"[^"]+"|\w+)\|)? ${flowchartNode})?)$`,
  ),
  sequenceDiagram: /^(?:(?:participant|actor) \w+ as .+|\w+--?>>\w+: [^;#]+)$/,
};
/** Matches the nodes that a statement refers to; `labels` matches the nodes for which a statement defines a label. */
const references = /^(\w+)(?:\W.*)? -->(?:\|[^|]*\|)? (\w+)|^(\w+)--?>>(\w+):/;
const labels = /(\w+)(?:\[|\{)|^(?:participant|actor) (\w+)/g;

const diagrams = documents.flatMap((file) =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/^```mermaid\n(.*?)^```$/gms)].map(
    ([, text = ''], index): [string, string] => [`${file} ${index + 1}`, text],
  ),
);

test.each(diagrams)('the diagram %s is well-formed', (_, text) => {
  const [first = '', ...lines] = text
    .trim()
    .split('\n')
    .map((line) => line.trim());
  const statement = statements[first.split(' ')[0] ?? ''];
  expect(first).toMatch(/^(?:flowchart (?:LR|TD)|sequenceDiagram)$/);
  expect(lines.filter((line) => statement?.test(line) !== true)).toEqual([]);
  expect(lines.filter((line) => line === 'end').length).toBe(
    lines.filter((line) => line.startsWith('subgraph ')).length,
  );
  const labelled = lines.flatMap((line) => [...line.matchAll(labels)].map(([, node, actor]) => node ?? actor));
  const referred = lines.flatMap((line) => references.exec(line)?.slice(1) ?? []).filter((name) => name !== undefined);
  expect(referred.filter((name) => !labelled.includes(name))).toEqual([]);
});
