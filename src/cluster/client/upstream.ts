/**
 * What is passed on to kube-apiserver as it came, for whoever asks: streaming both ways, over connections that are kept. The right to
 * impersonate is root-equivalent, so this door takes no request that does not say for whom it is.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import { badGateway, StatusError, timeout } from '../../runtime/errors.ts';
import { unreachable } from './kube-error.ts';
import { impersonationHeaders, type UpstreamIdentity } from './impersonation.ts';
import { type Address, Connections } from '../wire/connections.ts';
import { ResponseTimeout, isSafe, type ResponseFlow, type ResponseHandler } from '../wire/connection.ts';
import { assertOneIdentity, fieldsOf, headOf } from '../wire/request-head.ts';

export type { ResponseFlow, ResponseHandler };

export interface PassedRequest {
  readonly method: string;
  /** Path and query as they came. */
  readonly target: string;
  /** Names and values by turns, with nobody's credentials or identity among them. */
  readonly headers: readonly string[];
  /** In whose name. */
  readonly user: UpstreamIdentity;
  readonly body?: AsyncIterable<Buffer> | undefined;
  /** Of the body, in bytes, where it is known. */
  readonly length?: number | undefined;
  /** Such as a watch: it may be silent for as long as it likes. */
  readonly isLongRunning: boolean;
}

/** A connection of another protocol, which `first` begins. */
export interface UpgradedConnection {
  readonly connection: Duplex;
  readonly first: Buffer;
}

/** The answer to a request for another protocol. Its socket is to be destroyed in the end. */
export interface UpgradeAnswer {
  readonly answer: IncomingMessage;
  readonly granted?: UpgradedConnection;
}

export interface Upstream {
  /** Throws StatusError for a request that cannot be written; of whatever happens to it later the handler hears. */
  send(request: PassedRequest, handler: ResponseHandler): Promise<ResponseFlow>;
  /** On a connection of its own. Throws StatusError where there is no answer, and the reason of the signal. */
  upgrade(request: PassedRequest, protocol: string, signal: AbortSignal): Promise<UpgradeAnswer>;
  /** kube-apiserver did not take our own credential: it is read again before the next request. */
  credentialRefused(): void;
  close(): void;
}

export interface UpstreamOptions {
  readonly address: Address;
  readonly credential: { headers(): Promise<Readonly<Record<string, string>>>; renew(): void };
}

/** kube-apiserver gives a short request 60 s, and its own words are better than ours. */
const shortRequest = 65_000;
/** For an upgrade kube-apiserver asks a kubelet first. */
const handshakeTimeout = 60_000;
const maxHeaderSize = 256 * 1024;

const identities = new WeakMap<UpstreamIdentity, readonly string[]>();

/** Returns the impersonation headers of a caller, which are made once a caller. */
export function identityOf(user: UpstreamIdentity): readonly string[] {
  let headers = identities.get(user);
  if (headers === undefined) {
    headers = fieldsOf(impersonationHeaders(user));
    identities.set(user, headers);
  }
  return headers;
}

export function createUpstream({ address, credential }: UpstreamOptions): Upstream {
  const { url, hostname, prefix } = address;
  const { host, port, protocol } = url;
  // As many connections as there are requests, which the filters limit: who waited for one would wait for those who do not read.
  const connections = new Connections(address, Infinity);

  async function headersOf({ headers, user }: PassedRequest): Promise<string[]> {
    const { Authorization: authorization } = await credential.headers().catch((cause: unknown) => {
      throw unreachable(cause).toStatusError();
    });
    return withIdentity(headers, authorization, identityOf(user));
  }

  return {
    async send(request, handler) {
      const { method, target, body, length, isLongRunning } = request;
      const headers = await headersOf(request);
      const hasBody = body !== undefined;
      const head = headOf({ method, target: `${prefix}${target}`, host, headers, length, hasBody });
      return connections.send({ method, head, body, length, timeout: isLongRunning ? 0 : shortRequest, handler });
    },

    async upgrade(request, wanted, signal) {
      const headers = await headersOf(request);
      signal.throwIfAborted();
      const client = (protocol === 'https:' ? https : http).request({
        ...address.tls,
        hostname,
        port,
        agent: false,
        method: request.method,
        path: `${prefix}${request.target}`,
        // Without a length Node would end the empty body of a POST by a chunk that is taken for what follows.
        headers: ['Host', host, ...headers, 'Content-Length', '0', 'Connection', 'Upgrade', 'Upgrade', wanted],
        maxHeaderSize,
      });
      client.end();
      return await answerOf(client, signal);
    },

    credentialRefused: () => credential.renew(),

    close: () => connections.close(),
  };
}

/** Ours are the last. Throws unless the request is in the name of exactly one user, the one who was given. */
function withIdentity(
  headers: readonly string[],
  authorization: string | undefined,
  identity: readonly string[],
): string[] {
  for (let at = 0; at < headers.length; at += 2)
    if (/^(?:impersonate-|authorization$)/i.test(headers[at] ?? ''))
      throw new Error(`a request that is passed on must not bring its own ${headers[at]}`);
  if (identity[0] !== 'impersonate-user') throw new Error('a request that is passed on must say whose it is');
  const all = [...headers, ...(authorization === undefined ? [] : ['Authorization', authorization]), ...identity];
  assertOneIdentity(all);
  return all;
}

function answerOf(client: ClientRequest, signal: AbortSignal): Promise<UpgradeAnswer> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => client.destroy(tooLate()), handshakeTimeout);
    const giveUp = (): void => void client.destroy(signal.reason as Error);
    signal.addEventListener('abort', giveUp);
    const settle = (answer: UpgradeAnswer): void => {
      clearTimeout(late);
      signal.removeEventListener('abort', giveUp);
      resolve(answer);
    };
    client.once('upgrade', (answer, connection, first) => settle({ answer, granted: { connection, first } }));
    client.once('response', (answer) => settle({ answer }));
    client.on('error', (error) => {
      clearTimeout(late);
      reject(failureOf(error, client, client.writableFinished));
    });
  });
}

const silence = 'kube-apiserver does not answer in time';
const tooLate = (): StatusError => timeout(silence);

/** Whether trying again may do it twice. */
export const isChange = (request: Pick<PassedRequest, 'method'>): boolean => !isSafe(request);

/** Without Retry-After, by which client-go would send the change once more. */
export const unknownOutcome = (why: string, cause?: unknown): StatusError =>
  badGateway(`${why}: it is not known whether the change was made`, { cause });

/** Why there is no answer, or no more of it. */
export function failureOf(error: Error, request: Pick<PassedRequest, 'method'>, isSent: boolean): StatusError {
  if (error instanceof StatusError) return error;
  const isLost = isSent && isChange(request);
  if (error instanceof ResponseTimeout) return isLost ? unknownOutcome(silence) : tooLate();
  return isLost ? unknownOutcome('kube-apiserver gave no answer', error) : unreachable(error).toStatusError();
}
