/** Requests for Sessions to the cluster, with a timeout. Failures of the cluster are reported as 503. */
import { sessionsPath } from '../../config/names.ts';
import { serviceUnavailable, type StatusError } from '../../runtime/errors.ts';
import type { KubeClient, KubeRequest } from '../../cluster/client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import { isKubeError, KubeError } from '../../cluster/client/kube-error.ts';
import { metadataHeaders } from '../../cluster/client/kube-object.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Session } from './session.ts';

/**
 * Timeout of a request in milliseconds. The timeout is shorter than the grace period of a refresh. A client whose
 * refresh hangs therefore gets 503 while a retry can still get the new refresh token.
 */
const requestTimeout = 3_000;

export class SessionRequests {
  readonly #client: Pick<KubeClient, 'json'>;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(options: { client: Pick<KubeClient, 'json'>; namespace: string; clock: Clock; log: Logger }) {
    this.#client = options.client;
    this.#path = sessionsPath(options.namespace);
    this.#clock = options.clock;
    this.#log = options.log;
  }

  async get(sid: string): Promise<Session | undefined> {
    try {
      return await this.#send(`${this.#path}/${sid}`);
    } catch (error) {
      if (isKubeError(error, 404)) return undefined;
      throw error;
    }
  }

  async list(query: NonNullable<KubeRequest['query']>): Promise<readonly Session[]> {
    return (await this.#send<{ readonly items: readonly Session[] }>(this.#path, { query })).items;
  }

  /** Creates the session and returns it as stored. */
  async post(session: Session): Promise<Session> {
    try {
      // Only the metadata is requested, because the caller knows all other properties.
      const options = { method: 'POST', body: session, headers: metadataHeaders } as const;
      const { metadata } = await this.#send<Pick<Session, 'metadata'>>(this.#path, options);
      return { ...session, metadata };
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.code === 404)
        this.#log.error('CustomResourceDefinition sessions.iam.platform.io is missing: apply it again', { error });
      throw unavailable(error);
    }
  }

  /** Replaces the session. Returns undefined if it was changed or deleted in the meantime. */
  async put(session: Session): Promise<Session | undefined> {
    try {
      return await this.#send(`${this.#path}/${session.metadata.name}`, { method: 'PUT', body: session });
    } catch (error) {
      if (isKubeError(error, 409) || isKubeError(error, 404)) return undefined;
      throw error;
    }
  }

  /** Deletes the session. Returns false if it was changed or deleted in the meantime. */
  async delete({ metadata }: Session): Promise<boolean> {
    try {
      await this.#send(`${this.#path}/${metadata.name}`, {
        method: 'DELETE',
        body: { preconditions: { resourceVersion: metadata.resourceVersion } },
      });
      return true;
    } catch (error) {
      if (isKubeError(error, 404) || isKubeError(error, 409)) return false;
      throw error;
    }
  }

  /** Throws KubeError 404 and 409, which callers handle, and 503 for any other failure. */
  async #send<T = Session>(path: string, options?: KubeRequest): Promise<T> {
    const timeout = new AbortController();
    const cancel = this.#clock.after(requestTimeout, () => timeout.abort(new Error('request timed out')));
    try {
      return await this.#client.json<T>(path, { ...options, signal: timeout.signal });
    } catch (error) {
      throw error instanceof KubeError && error.code !== 404 && error.code !== 409 ? unavailable(error) : error;
    } finally {
      cancel();
    }
  }
}

const unavailable = (error: KubeError): StatusError =>
  serviceUnavailable('sessions cannot be read or written at the moment', 1, error);
