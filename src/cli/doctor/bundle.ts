/** The support bundle: the results, and what the checks read, without secrets. */
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { readBody } from '../../runtime/promises.ts';
import { redactText } from '../../runtime/redaction.ts';
import { tar, type TarEntry } from '../../runtime/tar.ts';
import type { Context } from './context.ts';
import { redactObject } from './redact.ts';

/** Limits of the logs. */
const maxPods = 10;
const maxLines = 1_000;
const maxBytes = 1024 * 1024;

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** Writes the bundle to a file that only its owner can read. */
export async function writeBundle(file: string, result: object, context: Context): Promise<void> {
  const files: readonly (readonly [path: string, text: string])[] = [
    ['doctor.json', json(result)],
    ...[...context.reader.objects].map(
      ([path, object]) => [`objects${fileName(path)}.json`, json(redactObject(object))] as const,
    ),
    ...[...context.reports].map(([name, text]) => [`reports${fileName(`/${name}`)}`, redactText(text)] as const),
    ...(await logs(context)),
  ];
  const entries = files.map(([path, text]): TarEntry => ({
    path: `platform-apiserver/${path}`,
    content: Buffer.from(text),
  }));
  await writeFile(file, await promisify(gzip)(Buffer.concat(await tar(entries))), { mode: 0o600 });
}

/** Returns a file name for the path of an object or a list. */
const fileName = (path: string): string => path.replaceAll('?', '/?').replace(/[^\w./=-]+/g, '_');

/** Returns the end of the log of each pod, and of its previous container. */
async function logs(context: Context): Promise<(readonly [string, string])[]> {
  const { reader, namespace } = context;
  // A check has already reported that the pods cannot be read.
  const pods = await context.pods().catch(() => []);
  const wanted = pods.slice(0, maxPods).flatMap(({ metadata: { name } }) => [
    { file: `logs/${name}.log`, path: `/api/v1/namespaces/${namespace}/pods/${name}/log`, previous: false },
    { file: `logs/${name}-previous.log`, path: `/api/v1/namespaces/${namespace}/pods/${name}/log`, previous: true },
  ]);
  const found: (readonly [string, string])[] = [];
  for (const { file, path, previous } of wanted) {
    const { status, body } = await reader.response(
      `${path}?tailLines=${maxLines}&limitBytes=${maxBytes}&previous=${previous}`,
    );
    const text = (await readBody(body)).toString('utf8');
    if (status === 200) found.push([file, redactText(text)]);
  }
  return found;
}
