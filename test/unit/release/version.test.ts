import { expect, test } from '@jest/globals';
import { absoluteLinks, items, section } from '../../../hack/release/changelog.ts';
import { versionProblems } from '../../../hack/release/version.ts';

const changelog = `# Changelog

## Unreleased (1.3.0)

- Later.

## 1.2.3 (2026-01-31)

Read [the guide](docs/guide.md), [an anchor](#121) and [a page](https://example.com/a).

### Added

- One item
  on two lines.
- Another item:
  - with a part.

### Fixed

- A fix.

## 1.2.3-rc.1

- Candidate.
`;
const files = (version: string) => ({
  'package.json': JSON.stringify({ version }),
  'Chart.yaml': `version: ${version}\nappVersion: ${version}\n`,
  'CHANGELOG.md': changelog,
});

test.each(['1.2.3', '1.2.3-rc.1'])('a work tree whose files all contain the version %s can be released', (version) => {
  expect(versionProblems(version, files(version))).toEqual([]);
});

test.each(['', 'v1.2.3', '1.2', '01.2.3', '1.2.3+build', '1.2.3-', '1.2.3\n', 'latest'])(
  'make release rejects the version %j',
  (version) => {
    expect(versionProblems(version, files('1.2.3'))).toEqual([
      `VERSION: expected a semantic version such as 1.2.3 or 1.2.3-rc.1, got ${JSON.stringify(version)}`,
    ]);
  },
);

test('make release reports each file that contains another version, and a missing heading in the changelog', () => {
  expect(versionProblems('1.3.0', files('1.2.3'))).toEqual([
    'package.json: version: expected 1.3.0, got 1.2.3; edit it and run make update',
    'Chart.yaml: version: expected 1.3.0, got 1.2.3; edit it and run make update',
    'Chart.yaml: appVersion: expected 1.3.0, got 1.2.3; edit it and run make update',
    'CHANGELOG.md: expected the heading "## 1.3.0"; rename "## Unreleased"',
  ]);
});

test('the release notes of a version end before the heading of the next version in the changelog', () => {
  expect(section(changelog, '1.2.3')).toMatch(/^Read \[the guide\][^]*- A fix\.$/);
  expect(section(changelog, '1.2.3-rc.1')).toBe('- Candidate.');
  expect(section(changelog, '1.2')).toBeUndefined();
});

test('each list item of the release notes becomes one line', () => {
  expect(items(section(changelog, '1.2.3') ?? '')).toEqual([
    'One item on two lines.',
    'Another item: - with a part.',
    'A fix.',
  ]);
});

test('relative links of the release notes are made absolute', () => {
  expect(absoluteLinks(section(changelog, '1.2.3') ?? '', 'https://example.com/o/r/blob/v1.2.3')).toContain(
    'Read [the guide](https://example.com/o/r/blob/v1.2.3/docs/guide.md), [an anchor](#121) and [a page](https://example.com/a).',
  );
});
