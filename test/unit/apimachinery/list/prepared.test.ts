import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { gunzipSync } from 'node:zlib';
import { PreparedLists } from '../../../../src/apimachinery/list/prepared.ts';
import { nodes, type NodeFields } from '../../../../src/resources/kinds/nodes.ts';
import { coreView, listOf, servedView } from '../../../../src/apimachinery/list/views.ts';
import type { StoredObject } from '../../../../src/cluster/cache/stored-object.ts';
import { node } from '../../../labs/resources.ts';

const wanted = new AbortController();
const large = (name: string, version: number, size: number): StoredObject<NodeFields> =>
  node(name, { resourceVersion: version, annotations: { text: `${version}`.padEnd(size, name) } });

describe.each([
  ['the core view', coreView(nodes, false)],
  ['the view with managed fields', coreView(nodes, true)],
  ['the served view', servedView(nodes)],
] as const)('prepared lists of %s', (_, view) => {
  test('prepared lists equal lists that are serialized without preparation, whatever has changed since the previous list', async () => {
    const change = fc.record({
      at: fc.nat(1000),
      what: fc.constantFrom('change', 'add', 'delete', 'nothing', 'clear'),
      size: fc.constantFrom(10, 30_000, 300_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(change, { maxLength: 4 }), { maxLength: 6 }), async (rounds) => {
        const lists = new PreparedLists<NodeFields>(view);
        let version = 1;
        let objects = Array.from({ length: 30 }, (__, index) => large(`n${index}`, version, 20_000));
        for (const changes of [[], ...rounds]) {
          for (const { at, what, size } of changes) {
            version += 1;
            const index = at % (objects.length + 1);
            const next = large(`v${version}`, version, size);
            if (what === 'change' && index < objects.length) objects = objects.with(index, next);
            else if (what === 'add') objects = objects.toSpliced(index, 0, next);
            else if (what === 'delete') objects = objects.toSpliced(index, 1);
            else if (what === 'clear') objects = objects.slice(0, at % 2);
          }
          const frame = view.frame({ resourceVersion: version }, objects.length);
          const parts: Buffer[] = [];
          for await (const part of listOf(view, objects, frame, wanted).parts) parts.push(...part);
          const plain = Buffer.concat(parts);
          expect(JSON.parse(plain.toString())).toMatchObject({ metadata: { resourceVersion: String(version) } });
          // Two concurrent lists share the pending result.
          const both = await Promise.all([lists.gzip(objects, frame), lists.gzip(objects, frame)]);
          for (const pieces of both) expect(gunzipSync(Buffer.concat(pieces)).equals(plain)).toBe(true);
        }
      }),
      { numRuns: 20 },
    );
  });
});
