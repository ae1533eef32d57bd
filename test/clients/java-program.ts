/** Java programs. The pom.xml of each program pins its libraries, and jars.sha256 verifies them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram } from '../../hack/cluster/apt.ts';
import { output } from '../../hack/cluster/exec.ts';
import { cached } from '../labs/cached.ts';
import type { Built } from './tool.ts';

const fetchJars = [
  '--batch-mode',
  '--quiet',
  '--strict-checksums',
  'org.apache.maven.plugins:maven-dependency-plugin:3.11.0:copy-dependencies',
];

/** Compiles java/NAME/Flows.java. */
export async function buildJavaProgram(name: string): Promise<Built> {
  for (const program of ['javac', 'mvn'])
    if (findProgram(program) === undefined)
      throw new Error(
        `${program} not found: install Java 17 or later and Maven (default-jdk-headless maven in Debian)`,
      );
  const source = join(import.meta.dirname, 'java', name);
  const files = ['pom.xml', 'jars.sha256', 'Flows.java'].map((file) => join(source, file));
  const [pom = '', ...rest] = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  const [, version] = [...pom.matchAll(/<version>(.*)<\/version>/g)].map(([, text]) => text);
  if (version === undefined) throw new Error(`${source}/pom.xml has no dependency with a version`);
  const path = await cached(name, [pom, ...rest], async (folder) => {
    const jars = join(folder, 'jars');
    await output('mvn', [...fetchJars, `-DoutputDirectory=${jars}`], { cwd: source });
    await output('sha256sum', ['--check', '--quiet', '--strict', join(source, 'jars.sha256')], { cwd: jars });
    await output('javac', ['-cp', `${jars}/*`, '-parameters', '-d', join(folder, 'classes'), files[2] ?? '']);
  });
  return { version, path };
}

/** Returns the command that runs a program, without its arguments. */
export const javaCommand = ({ path }: Built, ...options: readonly string[]): [string, ...string[]] => [
  'java',
  // Shortens the start of the JVM by a third.
  '-XX:TieredStopAtLevel=1',
  ...options,
  '-cp',
  `${path}/classes:${path}/jars/*`,
  'Flows',
];
