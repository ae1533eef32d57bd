/** Fenced blocks of the documents in order. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Block {
  readonly language: string;
  readonly text: string;
}

export const docs = join(import.meta.dirname, '../../../docs');

/** File name in the docs folder. */
export const documentOf = (file: string): string => readFileSync(join(docs, file), 'utf8');

export function blocksOf(file: string): Block[] {
  return [...documentOf(file).matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', block = '']) => ({
    language,
    text: block,
  }));
}

export const blocksIn = (file: string, language: string): string[] =>
  blocksOf(file).flatMap((block) => (block.language === language ? [block.text] : []));
