/** Connections to a replica, at the port to which kube-apiserver connects. */
import { request } from 'node:https';
import { connect } from 'node:tls';
import { presentedChain, type PresentedChain } from '../../auth/authenticators/client-chain.ts';
import { readBody } from '../../runtime/promises.ts';

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** Timeout in milliseconds. Outside the cluster, the addresses of pods often do not respond. */
const timeout = 3_000;
/** Maximum bytes of a response. The metrics are the largest. */
const maxBytes = 8 * 1024 * 1024;

/**
 * Returns the certificates that a replica presents, without verifying them; undefined if there is no TLS connection.
 */
export async function servedChain({ address, port }: Endpoint, host: string): Promise<PresentedChain | undefined> {
  return await new Promise((resolve) => {
    const socket = connect({ host: address, port, servername: host, rejectUnauthorized: false, timeout });
    const end = (chain?: PresentedChain): void => {
      socket.destroy();
      resolve(chain);
    };
    socket.once('secureConnect', () => end(presentedChain(socket)));
    socket.once('timeout', () => end());
    socket.once('error', () => end());
  });
}

export interface EndpointResponse {
  readonly status: number;
  readonly text: string;
}

interface EndpointRequest {
  readonly path: string;
  /** Name for which the certificate is verified. */
  readonly host: string;
  /** Trusted CAs, in PEM; undefined for those of Node.js. */
  readonly ca: string | undefined;
  readonly token: string;
}

/**
 * Sends a GET request to a replica, and verifies its certificate for the name and the CA that kube-apiserver uses.
 * Throws an error of Node.js.
 */
export async function getFrom({ address, port }: Endpoint, wanted: EndpointRequest): Promise<EndpointResponse> {
  const { path, host, ca, token } = wanted;
  const signal = AbortSignal.timeout(timeout);
  return await new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}` };
    const options = { host: address, port, path, servername: host, ca, headers, signal, agent: false };
    request(options, (response) => {
      readBody(response, maxBytes).then(
        (body) => resolve({ status: response.statusCode ?? 0, text: body.toString('utf8') }),
        reject,
      );
    })
      .on('error', reject)
      .end();
  });
}
