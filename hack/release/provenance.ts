/**
 * Provenance: an in-toto statement with the predicate of SLSA 1. The statement has no times, so that it is
 * reproducible.
 */
import type { Component } from './components.ts';
import type { Release } from './release.ts';

/** `subjects` maps file names to SHA-256 hashes in hexadecimal digits. */
export function provenance(
  { version, image, source, builder, commit }: Release,
  components: readonly Component[],
  subjects: ReadonlyMap<string, string>,
): object {
  // The URI has no tag, since a build does not need one. The commit identifies the source.
  const sourceUri = source === undefined ? {} : { uri: `git+${source}` };
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [...subjects].map(([name, sha256]) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:platform-apiserver:make-release:v1',
        externalParameters: { version, image, ...(source === undefined ? {} : { source }) },
        resolvedDependencies: [
          { name: 'source', ...sourceUri, digest: { gitCommit: commit } },
          ...components.map(({ purl, hash }) => ({
            uri: purl,
            digest: { [hash.alg === 'SHA-256' ? 'sha256' : 'sha512']: hash.content },
          })),
        ],
      },
      runDetails: { builder: { id: builder } },
    },
  };
}
