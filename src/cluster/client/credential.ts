import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../runtime/time.ts';
import { addressOf, connectionOptions, type Address } from '../wire/connections.ts';
import type { ClusterAccess, TLSOptions } from './access.ts';

/** Milliseconds after which the credential is read again. */
const credentialLife = 10_000;

/** Credential of this server and CA of the cluster. Their files are read again after `credentialLife`. */
export class ServerCredential {
  /** Address of kube-apiserver. Its TLS options are replaced when the files of the CA or certificate change. */
  readonly address: { -readonly [K in keyof Address]: Address[K] };
  readonly #load: () => ClusterAccess;
  readonly #clock: Clock;
  #access: ClusterAccess | undefined;
  #tls: TLSOptions;
  #read: { readonly headers: Record<string, string>; readonly at: number } | undefined;

  constructor(load: () => ClusterAccess, access: ClusterAccess, tls: TLSOptions, clock: Clock) {
    this.#load = load;
    this.#access = access;
    this.#tls = tls;
    this.#clock = clock;
    this.address = addressOf(access.server, tls);
  }

  /**
   * Returns the headers that authenticate this server. Keeps the last headers if the files cannot be read, for example
   * while only one file of a new certificate and key pair is written.
   */
  async headers(): Promise<Record<string, string>> {
    const last = this.#read;
    const now = this.#clock.monotonic();
    if (last !== undefined && now - last.at <= credentialLife) return last.headers;
    const headers = await this.#readFiles().catch((error: unknown) => {
      if (last === undefined) throw error;
      return last.headers;
    });
    this.#read = { headers, at: now };
    return headers;
  }

  /** Returns the issuer and audiences of this server's token. An opaque token, as some clouds issue, has none. */
  async claims(): Promise<TokenClaims> {
    return claimsOf(await this.headers());
  }

  async #readFiles(): Promise<Record<string, string>> {
    this.#access ??= this.#load();
    const tls = await this.#access.tls();
    // Changed options replace all connections.
    if (!isDeepStrictEqual(tls, this.#tls)) this.address.tls = connectionOptions(tls);
    this.#tls = tls;
    return await this.#access.headers();
  }

  /** Makes the next request read the kubeconfig again, because kube-apiserver rejected the credential. */
  renew(): void {
    this.#access = undefined;
    this.#read = undefined;
  }
}

interface TokenClaims {
  readonly issuer: string | undefined;
  readonly audiences: readonly string[];
}

function claimsOf({ Authorization: header }: Readonly<Record<string, string>>): TokenClaims {
  try {
    const payload = Buffer.from(header?.split('.')[1] ?? '', 'base64url').toString('utf8');
    const { iss, aud } = JSON.parse(payload) as { iss?: unknown; aud?: unknown };
    const audiences = [aud].flat().filter((audience) => typeof audience === 'string');
    return { issuer: typeof iss === 'string' ? iss : undefined, audiences };
  } catch {
    return { issuer: undefined, audiences: [] };
  }
}
