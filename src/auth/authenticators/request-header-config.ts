/**
 * Reads the ConfigMap kube-system/extension-apiserver-authentication, in which kube-apiserver publishes how the
 * aggregator authenticates itself. The ConfigMap is watched, because the CAs rotate (k8s.io/apiserver
 * pkg/authentication/request/headerrequest).
 */
import { X509Certificate } from 'node:crypto';
import type { KubeClient } from '../../cluster/client/client.ts';
import { Informer } from '../../cluster/cache/informer.ts';
import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Clock } from '../../runtime/time.ts';

export interface RequestHeaderConfig {
  readonly authorities: readonly X509Certificate[];
  /** Accepted common names. An empty list accepts every common name. */
  readonly allowedNames: readonly string[];
  /** Header names in lower case, as in Node. */
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
  /** Reason why the headers of all senders are refused; undefined if they are not. */
  readonly refused: string | undefined;
}

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

const namespace = 'kube-system';
const name = 'extension-apiserver-authentication';

const certificates = (pem: string | undefined): X509Certificate[] =>
  (pem?.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  );

/** Parses a JSON list. The error does not quote the value. */
function names(data: Readonly<Record<string, string>>, key: string): string[] {
  const list = jsonOf(data[key] ?? '[]');
  if (!Array.isArray(list) || !list.every((item) => typeof item === 'string'))
    throw new Error(`${key} is not a JSON list of names`);
  return list;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Parses the data of the ConfigMap. Throws if the data is malformed. */
export function readRequestHeaderConfig(data: Readonly<Record<string, string>>): RequestHeaderConfig {
  const lower = (key: string): string[] => names(data, key).map((item) => item.toLowerCase());
  const authorities = certificates(data['requestheader-client-ca-file']);
  const allowedNames = names(data, 'requestheader-allowed-names');
  const clients = new Set(certificates(data['client-ca-file']).map((one) => one.fingerprint256));
  const shared = authorities.some((one) => clients.has(one.fingerprint256));
  return {
    authorities,
    allowedNames,
    usernameHeaders: lower('requestheader-username-headers'),
    uidHeaders: lower('requestheader-uid-headers'),
    groupHeaders: lower('requestheader-group-headers'),
    extraHeaderPrefixes: lower('requestheader-extra-headers-prefix'),
    refused:
      authorities.length === 0
        ? `ConfigMap ${namespace}/${name} has no requestheader-client-ca-file: the aggregation layer of kube-apiserver is not set up`
        : shared && allowedNames.length === 0
          ? 'the request-header CA also signs client certificates and requestheader-allowed-names is empty, so any client could claim any identity; set --requestheader-allowed-names of kube-apiserver'
          : undefined,
  };
}

export class RequestHeaderSource {
  readonly #informer: Informer<ConfigMap>;
  #value: RequestHeaderConfig | undefined;
  #problem = 'not read yet';

  constructor(options: { client: KubeClient; clock: Clock; log: Logger }) {
    this.#informer = new Informer<ConfigMap>({
      client: options.client,
      path: `/api/v1/namespaces/${namespace}/configmaps`,
      fieldSelector: `metadata.name=${name}`,
      clock: options.clock,
      log: options.log,
    });
    this.#informer.onChange((type, { data = {} }) => {
      if (type === 'DELETED') return;
      try {
        this.#value = readRequestHeaderConfig(data);
        this.#problem = this.#value.refused ?? '';
      } catch (error) {
        // The last valid configuration stays in force.
        this.#problem = `ConfigMap ${namespace}/${name}: ${error instanceof Error ? error.message : String(error)}`;
        options.log.error('request-header configuration invalid', { error });
      }
    });
  }

  start(): void {
    this.#informer.start();
  }

  stop(): void {
    this.#informer.stop();
  }

  /** Configuration in force; undefined if no headers are trusted. */
  get value(): RequestHeaderConfig | undefined {
    return this.#value?.refused === undefined ? this.#value : undefined;
  }

  /** Returns the reason why headers are not trusted; '' if they are. */
  problem(): string {
    return this.#problem;
  }
}
