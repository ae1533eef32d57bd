/** Sends requests of the same user to kube-apiserver directly and through the gateway. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { parse } from 'yaml';
import { openURL } from '../../client/http1.ts';
import type { Message } from '../../client/message.ts';
import { open, read, secureGateway, type HttpResponse, type Call } from './http.ts';
import { lab } from './lab.ts';

export interface Person {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  /** Token for the gateway. */
  readonly token: string;
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
}

const decode = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64');

function administrator(): { readonly server: string; readonly identity: ConnectionOptions } {
  const { clusters, users } = parse(readFileSync(lab().kubeconfig, 'utf8')) as Kubeconfig;
  return {
    server: clusters[0]?.cluster['server'] ?? '',
    identity: {
      ca: decode(clusters[0]?.cluster['certificate-authority-data']),
      cert: decode(users[0]?.user['client-certificate-data']),
      key: decode(users[0]?.user['client-key-data']),
    },
  };
}

/** Returns the address of kube-apiserver and the CA of its certificate. */
export function kubeAPIServer(): { readonly server: string; readonly authority: string } {
  const { server, identity } = administrator();
  return { server, authority: String(identity.ca) };
}

/** Sends a request and returns the response as a stream. */
export type Way = (person: Person, path: string, call?: Call) => Promise<Message>;

/** Sends requests to kube-apiserver as its administrator who impersonates the user. */
export const direct: Way = ({ username, uid, groups }, path, { headers = {}, ...call } = {}) => {
  const { server, identity } = administrator();
  const impersonation = { 'impersonate-user': username, 'impersonate-uid': uid, 'impersonate-group': groups };
  return openURL(`${server}${path}`, identity, { ...call, headers: { ...headers, ...impersonation } });
};

export const through: Way = ({ token }, path, call = {}) => open(`${secureGateway()}${path}`, { ...call, token });

/** Headers that differ between the responses to two equal requests, and hop-by-hop headers. */
const ofOne = new Set(['audit-id', 'date', 'connection', 'keep-alive', 'transfer-encoding']);

export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export async function received(response: Promise<Message>): Promise<Received> {
  const { status, headers, body }: HttpResponse = await read(await response);
  const kept = Object.entries(headers).filter(([name]) => !ofOne.has(name));
  return { status, headers: Object.fromEntries(kept), body: body.toString('latin1') };
}
