import { readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { TextlintKernel } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import rule from '../prose/rules.ts';
import { hashCommentPlugin, typescriptPlugin, yamlPlugin } from '../prose/source-plugin.ts';
import { root, tracked } from './checks.ts';

/** Files that are not checked, because they are generated, are written by others, or contain the terms themselves. */
const skipped =
  /^(?:api\/|LICENSE|CHANGELOG\.md|CONTRIBUTING\.md|test\/clients\/generated\/|hack\/prose\/|test\/unit\/prose\.test\.ts)/;

const plugins = [
  { pluginId: 'markdown', plugin: markdown.default },
  { pluginId: 'typescript', plugin: typescriptPlugin },
  { pluginId: 'yaml', plugin: yamlPlugin },
  { pluginId: 'hash-comments', plugin: hashCommentPlugin },
];

/**
 * Returns the problems of a document, or of the comments, messages and test titles of a source file, as
 * `file:line:column: problem`.
 */
export async function proseProblems(file: string, text: string): Promise<string[]> {
  const options = { filePath: file, ext: extname(file) || basename(file), plugins, rules: [{ ruleId: 'style', rule }] };
  const { messages } = await new TextlintKernel().lintText(text, options);
  return messages.map(({ loc, message }) => `${file}:${loc.start.line}:${loc.start.column}: ${message}`);
}

/** Checks all files of the repository against the style of CONTRIBUTING.md. */
export async function prose(): Promise<string[]> {
  const files = await tracked('*.md', '*.ts', '*.yaml', '*.tpl', '*.sh', '*Makefile', '*Dockerfile');
  const checked = files.filter((file) => !skipped.test(file));
  const found = checked.map((file) => proseProblems(file, readFileSync(join(root, file), 'utf8')));
  return (await Promise.all(found)).flat();
}
