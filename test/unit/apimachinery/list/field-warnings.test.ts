import { describe, expect, test } from '@jest/globals';
import type { FieldSchema } from '../../../../src/cluster/field-schemas.ts';
import { fieldWarnings } from '../../../../src/apimachinery/list/field-warnings.ts';

const scalar: FieldSchema = { members: new Map(), additional: undefined, element: undefined, isOpen: false };

/** Members that count how often their names are listed. Each comparison with an unknown name lists the names once. */
class CountedMembers extends Map<string, FieldSchema> {
  comparisons = 0;

  override keys(): ReturnType<Map<string, FieldSchema>['keys']> {
    this.comparisons += 1;
    return super.keys();
  }
}

/** Returns the number of warnings and of comparisons for paths of `count` unknown fields. */
function warnOf(count: number): { warnings: number; comparisons: number } {
  const members = new CountedMembers([['known', scalar]]);
  const fields = Array.from({ length: count }, (_, index) => `unknown${index}`).join(',');
  const warnings = fieldWarnings({ ...scalar, members }, new URLSearchParams({ fields }));
  return { warnings: warnings.length, comparisons: members.comparisons };
}

// A comparison with the field names of a PodSpec blocks the event loop for 15 µs, and a URL can contain 30,000 paths.
describe('the search for the closest known fields', () => {
  test('the search for the closest known fields stops after eight warnings about unknown fields', () => {
    expect(warnOf(64)).toEqual({ warnings: 8, comparisons: 8 });
  });

  test('the search for the closest known fields is omitted if a request contains too many field paths', () => {
    expect(warnOf(65)).toEqual({ warnings: 0, comparisons: 0 });
  });
});
