/** Checks that a version can be released from this work tree. */
import { parse } from 'yaml';
import { section } from './changelog.ts';

/** The regular expression of semver.org, except for build metadata, which image tags cannot contain. */
const semver =
  /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?$/;

/** Contents of the files in the work tree that state the version. */
interface Stated {
  readonly 'package.json': string;
  readonly 'Chart.yaml': string;
  readonly 'CHANGELOG.md': string;
}

/** Returns what must be fixed before `version` can be released. */
export function versionProblems(version: string, files: Stated): string[] {
  if (!semver.test(version))
    return [`VERSION: expected a semantic version such as 1.2.3 or 1.2.3-rc.1, got ${JSON.stringify(version)}`];
  const problems: string[] = [];
  const expect = (where: string, found: unknown): void => {
    if (found !== version)
      problems.push(`${where}: expected ${version}, got ${String(found)}; edit it and run make update`);
  };
  expect('package.json: version', (JSON.parse(files['package.json']) as { version: unknown }).version);
  const chart = parse(files['Chart.yaml']) as Record<string, unknown>;
  for (const key of ['version', 'appVersion']) expect(`Chart.yaml: ${key}`, chart[key]);
  if (section(files['CHANGELOG.md'], version) === undefined)
    problems.push(`CHANGELOG.md: expected the heading "## ${version}"; rename "## Unreleased"`);
  return problems;
}
