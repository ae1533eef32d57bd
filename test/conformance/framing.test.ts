/**
 * Framing of every response to GET: each body ends where its headers announce, over each protocol, for each number of
 * objects.
 */
// evidence: response-framing
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { hash } from 'node:crypto';
import * as chain from '../../src/http/chain.ts';
import type { Route } from '../../src/http/route.ts';
import { whole, type Message, type Whole } from '../client/message.ts';
import type { Face, FramingLab, Open, Protocol } from '../labs/conformance/framing-lab.ts';
import { casesOf, type Case, type Extent, type NamesOf } from '../labs/conformance/framing-table.ts';

/** Routes of each listener, the gateway's first. */
const faces: (readonly Route[])[] = [];
jest.unstable_mockModule('../../src/http/chain.ts', () => ({
  ...chain,
  createHttpHandler: (...given: Parameters<typeof chain.createHttpHandler>) => {
    faces.push(given[0]);
    return chain.createHttpHandler(...given);
  },
}));
const { startLab } = await import('../labs/conformance/lab.ts');
const { countIn, framingLab, one, prepare, protocols } = await import('../labs/conformance/framing-lab.ts');

const sizes = (process.env['FRAMING_SIZES'] ?? '0,1,255,256,257,1000').split(',').map(Number);
/**
 * Sizes tested with all combinations of the parameters that change the shape of a body. Other parameters are tested one
 * at a time, and only over the first protocol.
 */
const fullSizes = [0, 1, 257];
// Secrets are not cached but read from kube-apiserver.
const names: NamesOf = (path, parameter) => {
  if (parameter === 'resources') return ['pods', 'secrets'];
  return [path.includes('/users/') ? 'alice' : one];
};
/** Paths whose content differs from one request to the next. */
const changing = /^\/(metrics|oauth|livez|readyz|healthz)|\/whoami|[?&]watch=/;
/** Matches the resourceVersion of an uncached list, which changes with every write to the cluster. */
const ownVersion = /"?resourceVersion"?: ?"\d+"/;
/** Connections used in parallel, so that a consistent read that waits for the cache does not delay other requests. */
const lanes = 8;
/**
 * Maximum objects in a list for which connections are used in parallel. A longer list takes seconds. Server and client
 * share this process, so several such lists at once would exceed the server's deadline.
 */
const maxObjectsOfLanes = 1_000;
/** Maximum objects that all parallel watches hold in memory. */
const maxWatched = 200_000;
/** Milliseconds after which thousands of requests count as hung. They take two minutes if other suites use the cores. */
const requestsTimeout = 600_000;
/** Maximum duration of a watch in seconds. */
const maxWatchSeconds = 60;
/** Minimum rate at which one of several parallel watches sends objects. */
const objectsWatchedPerSecond = 10_000;
/** Chunks that the slow reader reads before it yields. Long lists need more chunks per turn to meet their deadline. */
const chunksAtOnce = Math.max(...sizes) > maxObjectsOfLanes ? 20 : 1;
/** Maximum login records of a user. */
const maxRecords = 100;
const codings = ['identity', 'gzip'];

/** Paths whose list contains all objects of its kind. */
const counted = /\/(nodes|pods|secrets|namespaces|users|components|alice\/(sessions|loginrecords))$/;

const tableOf = ({ routes }: Face, extent: Extent): Case[] =>
  routes.filter(({ method }) => method === 'get').flatMap((route) => casesOf(route, names, extent));

function extentOf(size: number, protocol: Protocol): Extent {
  if (!fullSizes.includes(size)) return 'pairs';
  return protocol === protocols[0] ? 'each' : 'shapes';
}

let lab: FramingLab;
beforeAll(async () => {
  lab = await framingLab(await startLab({ prepare }), faces);
});
afterAll(() => lab.stop());

describe.each(sizes)('with %d objects in each list', (size) => {
  beforeAll(() => lab.grow(size));

  /** Returns the faults of the responses to one case. */
  async function faultsOf(
    face: Face,
    { path, accept, isWholeList }: Case,
    send: Open,
    seen: Map<string, string>,
  ): Promise<string[]> {
    const faults: string[] = [];
    // Tables contain the ages of objects.
    const isChanging = changing.test(path) || accept.includes('as=Table');
    for (const coding of codings) {
      const request = { path, headers: { ...face.headers, accept, 'accept-encoding': coding } };
      const at = `${path} (${accept}, ${coding})`;
      try {
        const actual = await whole(await send(request));
        if (actual.status >= 500) faults.push(`${at}: ${actual.status} ${actual.content.toString()}`);
        const key = `${path} ${accept}`;
        const before = seen.get(key);
        const body = hash('sha256', `${actual.status} ${actual.content.toString().replace(ownVersion, '')}`);
        if (before === undefined) seen.set(key, body);
        else if (before !== body && !isChanging) faults.push(`${at}: another body than before`);
        const [plainPath = ''] = path.split('?');
        if (isWholeList && actual.status === 200 && counted.test(plainPath))
          faults.push(
            ...miscounted(
              actual,
              at,
              plainPath.endsWith('loginrecords') ? Math.min(size, maxRecords) : countIn(plainPath, size),
            ),
          );
        const head = await whole(await send({ ...request, method: 'HEAD' }));
        for (const name of ['content-length', 'content-type', 'content-encoding', 'vary', 'etag'])
          if (!isChanging && head.headers[name] !== actual.headers[name])
            faults.push(`${at}: HEAD has ${name} ${String(head.headers[name])}, GET ${String(actual.headers[name])}`);
      } catch (error) {
        faults.push(`${at}: ${String(error)}`);
      }
    }
    return faults;
  }

  describe.each(['gateway', 'aggregated'] as const)('at the %s listener', (name) => {
    const seen = new Map<string, string>();

    test.each(protocols)(
      'each response to GET and HEAD over %s is framed as its headers declare',
      async (protocol) => {
        const face = lab[name];
        const table = tableOf(face, extentOf(size, protocol)).filter(({ isWatch }) => !isWatch);
        expect(table.length).toBeGreaterThan(10);
        const waiting = table.values();
        const lane = async (): Promise<string[]> => {
          const client = face.client(protocol);
          for (const next of waiting) {
            const faults = await faultsOf(face, next, client.open, seen);
            // The connection is unusable after most faults.
            if (faults.length > 0) return faults;
          }
          await client.close();
          return [];
        };
        const faults = await Promise.all(Array.from({ length: size > maxObjectsOfLanes ? 1 : lanes }, lane));
        expect(faults.flat()).toEqual([]);
      },
      requestsTimeout,
    );
  });

  test('each watch sends all objects and completes', async () => {
    // Watches of many objects take seconds each.
    const protocolsOfWatches = size > maxObjectsOfLanes ? protocols.slice(-1) : protocols.slice(1);
    const watches = [lab.gateway, lab.aggregated].flatMap((face) =>
      tableOf(face, 'each')
        .filter(({ isWatch }) => isWatch)
        .flatMap((watch) => protocolsOfWatches.map((protocol) => ({ ...watch, face, protocol }))),
    );
    const waiting = watches.values();
    const lane = async (): Promise<string[]> => {
      const outcomes: string[] = [];
      for (const next of waiting) outcomes.push(await outcomeOfWatch(next, size));
      return outcomes;
    };
    const atOnce = Math.min(watches.length, Math.ceil(maxWatched / (size + 1)));
    const outcomes = (await Promise.all(Array.from({ length: atOnce }, lane))).flat();
    expect(outcomes.filter((outcome) => !['complete', 'refused'].includes(outcome))).toEqual([]);
    expect(outcomes.filter((outcome) => outcome === 'complete').length).toBeGreaterThan(0.6 * watches.length);
  });
});

test.each(protocols)('clients that read slowly or disconnect receive intact data over %s', async (protocol) => {
  await lab.grow(Math.max(...sizes));
  const lists = [lab.gateway, lab.aggregated].flatMap((face) =>
    tableOf(face, 'pairs')
      .filter(({ isWholeList, accept }) => isWholeList && !accept.includes('as=Table'))
      .map(({ path, accept }) => ({ face, request: { path, headers: { ...face.headers, accept } } })),
  );
  for (const { face, request } of lists) {
    const clients = [];
    const messages = [];
    // The clients receive the lists sequentially, because the cluster in this process writes a whole list at once.
    // Meanwhile, the server would time out the handshakes of other clients.
    for (let count = 0; count < 3; count += 1) {
      const client = face.client(protocol);
      clients.push(client);
      messages.push(await client.open(request));
    }
    const [closing, slow, usual] = messages;
    for await (const _ of closing as Message) break;
    const chunks: Buffer[] = [];
    for await (const chunk of slow as Message) {
      chunks.push(chunk as Buffer);
      if (chunks.length % chunksAtOnce === 0) await new Promise(setImmediate);
    }
    const { body } = await whole(usual as Message);
    expect(Buffer.concat(chunks).toString().replace(ownVersion, '')).toBe(body.toString().replace(ownVersion, ''));
    for (const client of clients) await client.close();
  }
});

/** Returns `complete`, `refused` (400, 404), or a fault: broken framing, or missing objects. */
async function outcomeOfWatch(
  { path, accept, face, protocol }: Case & { readonly face: Face; readonly protocol: Protocol },
  size: number,
): Promise<string> {
  const at = `${path} (${accept}) over ${protocol}`;
  const client = face.client(protocol);
  const watchFor = (seconds: number): ReturnType<Open> =>
    client.open({
      path: path.replace(/(?<=timeoutSeconds=)\d+/, String(seconds)),
      headers: { ...face.headers, accept },
    });
  try {
    const { status, content } = await wholeWatch(watchFor, Math.ceil(size / objectsWatchedPerSecond));
    await client.close();
    if (status !== 200) return [400, 404].includes(status) ? 'refused' : `${at}: ${status}`;
    const shown = content.toString().split('"ADDED"').length - 1;
    const existing = path.includes(`/${one}?`) ? Math.min(size, 1) : size;
    return shown === existing ? 'complete' : `${at}: ${shown} objects instead of ${existing}`;
  } catch (error) {
    return `${at}: ${String(error)}`;
  }
}

/** Repeats a watch with a longer timeout until it has sent all objects, which takes longer on a busy machine. */
async function wholeWatch(watchFor: (seconds: number) => ReturnType<Open>, minSeconds: number): Promise<Whole> {
  for (let seconds = Math.max(1, minSeconds); ; seconds *= 2) {
    const watch = await whole(await watchFor(seconds));
    if (watch.status !== 200 || watch.content.includes('k8s.io/initial-events-end') || seconds > maxWatchSeconds)
      return watch;
  }
}

/** Returns the number of items of a list. In YAML, only lines that start an item begin with two spaces and a dash. */
function countOf({ headers, content }: Whole): number | undefined {
  const text = content.toString();
  if (headers['content-type'] === 'application/yaml') return text.match(/^ {2}- /gm)?.length ?? 0;
  const { items, rows } = JSON.parse(text) as { items?: unknown[]; rows?: unknown[] };
  return (items ?? rows)?.length;
}

function miscounted(actual: Whole, at: string, size: number): string[] {
  const found = countOf(actual);
  return found === size ? [] : [`${at}: ${found} items instead of ${size}`];
}
