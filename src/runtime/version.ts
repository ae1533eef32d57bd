import { readFileSync } from 'node:fs';

/** Returns package.json, which is next to both src and dist. */
const readPackage = (): { readonly version: string; readonly engines: { readonly node: string } } =>
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as ReturnType<typeof readPackage>;

export const readVersion = (): string => readPackage().version;

/** Returns a message if this Node.js is older than `engines` in package.json allows; undefined otherwise. */
export function nodeProblem(): string | undefined {
  const required = Number.parseInt(readPackage().engines.node.replace('>=', ''), 10);
  const { node } = process.versions;
  return Number.parseInt(node, 10) < required ? `requires Node.js ${required} or later, got ${node}` : undefined;
}
