/** Writes the support bundle: the results, and the data that the checks have read, without secrets. */
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { mapConcurrent, readEnd } from '../../runtime/promises.ts';
import { redactText } from '../../runtime/redaction.ts';
import { tar, type TarEntry } from '../../runtime/tar.ts';
import { containerName, type Context } from './context.ts';
import { redactLog } from './redact-log.ts';
import { redactObject } from './redact.ts';

/** Limits on the logs in the bundle. */
const maxPods = 10;
const maxLines = 1_000;
const maxBytes = 1024 * 1024;
/** Timeout in milliseconds. kube-apiserver waits 30 s for a connection to a kubelet, and then reports the reason. */
const timeout = 35_000;

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** Writes the bundle to a new file that only its owner can read. */
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
  const archive = await promisify(gzip)(Buffer.concat(await tar(entries)));
  // An existing file would keep its mode, and a link would redirect the bundle.
  await writeFile(file, archive, { mode: 0o600, flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST' ? new Error(`${file} already exists`, { cause: error }) : error;
  });
}

/** Returns a file name for the path of an object or a list. */
const fileName = (path: string): string => path.replaceAll('?', '/?').replace(/[^\w./=-]+/g, '_');

/**
 * Returns the newest bytes of a log, without the rest of an incomplete line. The parameter limitBytes of kube-apiserver
 * would return the oldest bytes.
 */
async function readNewest(body: AsyncIterable<unknown>): Promise<Buffer> {
  const end = await readEnd(body, maxBytes);
  return end.length < maxBytes ? end : end.subarray(end.indexOf('\n') + 1);
}

/** Returns the end of the log of each pod, and of its previous container, or the reason why a log is not available. */
async function logs(context: Context): Promise<(readonly [string, string])[]> {
  const { reader, namespace } = context;
  // A check has already reported that the pods cannot be read.
  const pods = await context.pods().catch(() => []);
  const wanted = pods.slice(0, maxPods).flatMap(({ metadata: { name } }) => [
    { name, previous: false },
    { name, previous: true },
  ]);
  const query = `container=${containerName}&tailLines=${maxLines}`;
  const found = await mapConcurrent(wanted, wanted.length, async ({ name, previous }) => {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/log?${query}&previous=${previous}`;
    const text = await reader.response(path, timeout, readNewest).then(
      ({ status, text: body }) => {
        if (status === 200) return redactLog(body);
        // A container that never restarted has no previous log.
        return status === 400 && previous ? undefined : `not available: ${status}: ${redactText(body)}\n`;
      },
      (error: Error) => `not available: ${error.message}\n`,
    );
    return text === undefined ? [] : [[`logs/${name}${previous ? '-previous' : ''}.log`, text] as const];
  });
  return found.flat();
}
