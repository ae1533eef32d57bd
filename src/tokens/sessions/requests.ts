/** What is asked of the cluster about Sessions, each within seconds: 503 for whatever is wrong between us and it. */
import { sessionsPath } from '../../config/names.ts';
import { serviceUnavailable, type StatusError } from '../../runtime/errors.ts';
import type { KubeClient, KubeRequest } from '../../cluster/client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import { isKubeError, KubeError } from '../../cluster/client/kube-error.ts';
import { metadataHeaders } from '../../cluster/client/kube-object.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Session } from './session.ts';

/**
 * Shorter than the grace of a refresh: an honest client whose refresh hung is told to try again while the successor is still
 * to be had.
 */
const longestAnswer = 3_000;

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

  /** As the cluster has it then. */
  async post(session: Session): Promise<Session> {
    try {
      // The rest of what is written is known.
      const options = { method: 'POST', body: session, headers: metadataHeaders } as const;
      const { metadata } = await this.#send<Pick<Session, 'metadata'>>(this.#path, options);
      return { ...session, metadata };
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.code === 404)
        this.#log.error('the cluster has no sessions.iam.platform.io: apply its CustomResourceDefinition again', {
          error,
        });
      throw unavailable(error);
    }
  }

  /** Undefined when somebody else has changed the session meanwhile, or it is gone. */
  async put(session: Session): Promise<Session | undefined> {
    try {
      return await this.#send(`${this.#path}/${session.metadata.name}`, { method: 'PUT', body: session });
    } catch (error) {
      if (isKubeError(error, 409) || isKubeError(error, 404)) return undefined;
      throw error;
    }
  }

  /** False when somebody else has changed the session meanwhile, or it is gone. */
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

  /** Throws KubeError 404 and 409, which mean something here. */
  async #send<T = Session>(path: string, options?: KubeRequest): Promise<T> {
    const giveUp = new AbortController();
    const cancel = this.#clock.after(longestAnswer, () => giveUp.abort(new Error('no answer in time')));
    try {
      return await this.#client.json<T>(path, { ...options, signal: giveUp.signal });
    } catch (error) {
      throw error instanceof KubeError && error.code !== 404 && error.code !== 409 ? unavailable(error) : error;
    } finally {
      cancel();
    }
  }
}

const unavailable = (error: KubeError): StatusError =>
  serviceUnavailable('the state of sessions cannot be read or written in the cluster now', 1, error);
