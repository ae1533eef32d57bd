/**
 * Lower bound for a server on Node.js: a node:http server that returns the bytes of a file. Arguments: the port and the
 * file.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [port = '', file = ''] = process.argv.slice(2);
const body = readFileSync(file);
const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length };

createServer({ keepAlive: true }, (_, res) => {
  res.writeHead(200, headers).end(body);
}).listen(Number(port), '127.0.0.1');
