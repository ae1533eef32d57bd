import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from '../build.ts';
import { licenseProblems } from '../release/licenses.ts';

/** Checks the licences of the packages that the server is bundled with, as `make release` does. */
export async function licenses(): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'platform-licenses-'));
  try {
    return licenseProblems(await build(folder));
  } finally {
    await rm(folder, { recursive: true });
  }
}
