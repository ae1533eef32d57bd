/**
 * Records api/examples/platform.json: a request and a response of each operation of the platform, with an in-memory
 * cluster (test/labs/conformance/examples.ts). The API descriptions include these examples, so run this script before
 * hack/update-api.ts.
 */
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { runExamples } from '../test/labs/conformance/examples.ts';
import { writeFolder } from './generated.ts';

const folder = path.join(import.meta.dirname, '../api/examples');
const file = 'platform.json';
const style = (await resolveConfig(path.join(folder, file))) ?? {};
const text = await format(JSON.stringify(await runExamples()), { ...style, parser: 'json' });
writeFolder(folder, new Map([[file, text]]));
