/**
 * Generates clients from the API descriptions by the commands in docs/reference/api.md. The folder of a client also
 * contains a copy of the program in test/clients/generated that uses the client.
 */
import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { execute, output, type Executed } from '../../../hack/cluster/exec.ts';
import { goBuildFlags } from '../../../hack/cluster/go-modules.ts';
import { clients, obtainNpmPackages, obtainPythonPackages } from './clients.ts';
import { blocksIn } from './documents.ts';
import { secureGateway } from './http.ts';
import { foundPath, lab } from './lab.ts';
import { adminToken } from './login.ts';

export type Language = 'typescript' | 'python' | 'go';
type Env = Readonly<Record<string, string>>;

/** Folder with the generated code and the program that uses the code. */
export interface Generated {
  readonly folder: string;
  /** Output of a generator. */
  readonly printed: string;
  readonly env: Env;
}

const root = join(import.meta.dirname, '../../..');
const generators: Readonly<Record<Language, string>> = {
  typescript: 'npx openapi-typescript',
  python: 'openapi-python-client',
  go: 'go tool',
};

/** Returns the documented commands that fetch the descriptions and generate a client. */
function commandsFor(language: Language): readonly [string, string] {
  const [fetch = '', ...others] = blocksIn('reference/api.md', 'bash');
  const make = others.find((text) => text.includes(generators[language]));
  if (make === undefined) throw new Error(`docs/reference/api.md does not describe how to use ${generators[language]}`);
  return [fetch, make];
}

const path = (...folders: readonly string[]): string =>
  [...folders, dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter);

/**
 * Prepares a folder for the generator, and returns the environment variables by which the shell finds the generator.
 */
async function prepare(language: Language, folder: string): Promise<Env> {
  if (language === 'go') return { CGO_ENABLED: '0' };
  if (language === 'typescript') {
    symlinkSync(join(foundPath(await obtainNpmPackages()), 'node_modules'), join(folder, 'node_modules'));
    return { PATH: path() };
  }
  const packages = foundPath(await obtainPythonPackages('generated/python'));
  return { PATH: path(join(packages, 'bin')), PYTHONPATH: packages, PYTHONDONTWRITEBYTECODE: '1' };
}

/** `change` modifies platform.v3.json before the generator reads it. */
export async function generate(
  language: Language,
  change: (description: string) => string = (text) => text,
): Promise<Generated> {
  const folder = mkdtempSync(join(lab().dir, `${language}-`));
  cpSync(join(clients, 'generated', language), folder, { recursive: true });
  const env = await prepare(language, folder);
  const [fetch, make] = commandsFor(language);
  const access = { TLS_URL: secureGateway(), CURL_CA_BUNDLE: lab().authorityFile, TOKEN: await adminToken() };
  const reader = { ...env, ...access };
  const paste = async (block: string): Promise<string> => {
    const { code, stdout, stderr } = await execute('bash', ['--norc', '-euo', 'pipefail', '-c', block], {
      cwd: folder,
      env: reader,
    });
    if (code !== 0) throw new Error(`${block}\n${stdout}${stderr}`);
    return `${stdout}${stderr}`;
  };
  await paste(fetch);
  const file = join(folder, 'platform.v3.json');
  writeFileSync(file, change(readFileSync(file, 'utf8')));
  return { folder, printed: await paste(make), env };
}

/** Type-checks generated code and its user with this project's compiler and options. */
export function checkTypes(folder: string): Promise<Executed> {
  const options = { rootDir: '.', typeRoots: [join(root, 'node_modules/@types')] };
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions: options, include: ['*.ts'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  return execute(process.execPath, [join(root, 'node_modules/.bin/tsc'), '--project', folder]);
}

/** Builds the folder's program, whose argument is a URL. */
export async function build(language: Language, { folder, env }: Generated): Promise<readonly [string, ...string[]]> {
  if (language === 'typescript') return [process.execPath, join(folder, 'cases.ts')];
  if (language === 'python') return ['python3', join(folder, 'cases.py')];
  const flags = await goBuildFlags();
  await output('go', ['vet', ...flags, '.'], { cwd: folder, env });
  await output('go', ['build', ...flags, '-o', 'cases', '.'], { cwd: folder, env });
  return [join(folder, 'cases')];
}
