/** Returns the fenced code blocks of the documents, in order. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Block {
  readonly language: string;
  readonly text: string;
}

export const docs = join(import.meta.dirname, '../../../docs');

/** Returns the text of a file in the docs folder. */
export const documentOf = (file: string): string => readFileSync(join(docs, file), 'utf8');

const blocksOfText = (text: string): Block[] =>
  [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', block = '']) => ({ language, text: block }));

export const blocksOf = (file: string): Block[] => blocksOfText(documentOf(file));

/** Returns a pattern for a documented output, in which `…` stands for anything. */
export function outputPattern(documented: string): RegExp {
  const parts = documented.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

/** Returns the code blocks of the section with this heading of the second level. */
export function blocksUnder(file: string, heading: string): Block[] {
  const section = documentOf(file)
    .split(/^## /m)
    .find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`${file} has no section "${heading}"`);
  return blocksOfText(section);
}

export const blocksIn = (file: string, language: string): string[] =>
  blocksOf(file).flatMap((block) => (block.language === language ? [block.text] : []));
