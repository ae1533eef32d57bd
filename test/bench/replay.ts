/**
 * Process that replays a watch of nodes like those of kube-apiserver, at the rate that its parent sends. Argument: the
 * number of nodes. Sends its URL and its CA to its parent.
 */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { newMaterial, trustedBy } from '../../src/tls/authority.ts';
import { node } from './objects.ts';

export interface Replay {
  readonly url: string;
  readonly ca: string;
}

interface Node {
  readonly metadata: { resourceVersion?: string; readonly managedFields: { time: string }[] };
  readonly status: { readonly conditions: { lastHeartbeatTime: string }[] };
}

/** Maximum bytes that kube-apiserver writes at a time. */
const pieceSize = 4096;
const count = Number(process.argv[2]);
const nodes = Array.from({ length: count }, (_, index) => node(index, count) as Node);
let resourceVersion = 1_000_000;
let watch: ServerResponse | undefined;
let rate = 0;
let begin = performance.now();
let sent = 0;

/** Writes a chunk in several pieces, like Go's net/http, directly to the socket, because `write` would join the pieces. */
function send(event: object): void {
  const line = Buffer.from(`${JSON.stringify(event)}\n`);
  const chunk = Buffer.concat([Buffer.from(`${line.length.toString(16)}\r\n`), line, Buffer.from('\r\n')]);
  for (let at = 0; at < chunk.length; at += pieceSize) watch?.socket?.write(chunk.subarray(at, at + pieceSize));
}

/** Sends the node as after a heartbeat of its kubelet. */
function change(index: number): void {
  const object = nodes[index % count] as Node;
  resourceVersion += 1;
  const time = new Date(1_800_000_000_000 + resourceVersion * 1000).toISOString().replace(/\.\d+/, '');
  object.metadata.resourceVersion = String(resourceVersion);
  for (const fields of object.metadata.managedFields.slice(1)) fields.time = time;
  for (const condition of object.status.conditions) condition.lastHeartbeatTime = time;
  send({ type: 'MODIFIED', object });
}

/** Returns the list of the nodes, whose items have neither kind nor apiVersion. */
function list(): object {
  for (const [index, object] of nodes.entries()) object.metadata.resourceVersion ??= String(index + 1);
  const items = nodes.map((object) => ({ ...object, kind: undefined, apiVersion: undefined }));
  return { kind: 'NodeList', apiVersion: 'v1', metadata: { resourceVersion: String(resourceVersion) }, items };
}

const material = await newMaterial(['127.0.0.1'], Date.now());
const server = createServer({ cert: material['tls.crt'], key: material['tls.key'] }, (req, res) => {
  res.writeHead(200, { 'Content-Type': 'application/json' });
  if (!new URL(req.url ?? '', 'https://localhost').searchParams.has('watch')) {
    res.end(JSON.stringify(list()));
    return;
  }
  watch = res;
  res.flushHeaders();
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');

setInterval(() => {
  for (const due = ((performance.now() - begin) * rate) / 1000; sent < due; sent += 1) change(sent);
}, 1);
process.on('message', (perSecond: number) => {
  rate = perSecond;
  begin = performance.now();
  sent = 0;
});
process.on('disconnect', () => process.exit());
const { port } = server.address() as AddressInfo;
process.send?.({ url: `https://127.0.0.1:${port}`, ca: trustedBy(material) } satisfies Replay);
