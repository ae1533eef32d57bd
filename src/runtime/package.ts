import { readFileSync } from 'node:fs';

/** The folder of package.json. A build has all its modules in `dist`. */
const root = new URL(import.meta.url.endsWith('.ts') ? '../../' : '../', import.meta.url);

/** Reads a JSON file of the package. */
export const readPackageFile = (path: string): unknown => JSON.parse(readFileSync(new URL(path, root), 'utf8'));

const readPackage = (): { readonly version: string; readonly engines: { readonly node: string } } =>
  readPackageFile('package.json') as ReturnType<typeof readPackage>;

export const readVersion = (): string => readPackage().version;

/** Returns a message if this Node.js version is older than `engines` in package.json allows; otherwise undefined. */
export function nodeProblem(): string | undefined {
  const required = Number.parseInt(readPackage().engines.node.replace('>=', ''), 10);
  const { node } = process.versions;
  return Number.parseInt(node, 10) < required ? `requires Node.js ${required} or later, got ${node}` : undefined;
}
