/**
 * Software bill of materials in CycloneDX 1.6. Unlike `npm sbom`, which lists the installed packages, this module lists
 * the components of the image.
 */
import { createHash } from 'node:crypto';
import type { Component } from './components.ts';
import type { Release } from './release.ts';

export function sbom({ version, created }: Release, components: readonly Component[], digest: string): object {
  const listed = components.map(({ license, hash, purl, ...rest }) => ({
    'bom-ref': purl,
    ...rest,
    purl,
    hashes: [hash],
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
  }));
  const component = {
    type: 'container',
    'bom-ref': 'platform-apiserver',
    name: 'platform-apiserver',
    version,
    purl: `pkg:oci/platform-apiserver@${encodeURIComponent(digest)}`,
    licenses: [{ expression: 'Apache-2.0' }],
  };
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuid(JSON.stringify([component, listed]))}`,
    version: 1,
    metadata: { timestamp: created, component },
    components: listed,
  };
}

/** Returns a UUID of version 8 (RFC 9562), which depends only on the text. */
function uuid(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
