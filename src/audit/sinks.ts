import type { AuditSettings } from '../config/audit.ts';
import type { LiveConfiguration } from '../config/live.ts';
import type { SecretRefs } from '../cluster/secret-refs.ts';
import type { Logger } from '../runtime/logger.ts';
import { FileSink, standardOutputSink } from './log-sink.ts';
import type { Sink } from './sink.ts';
import { WebhookSink } from './webhook-sink.ts';

interface Parts {
  readonly config: LiveConfiguration;
  readonly secrets: Pick<SecretRefs, 'read'>;
  readonly log: Logger;
  /** Receives the number of events dropped by a sink, 'log' or 'webhook'. */
  readonly dropped: (sink: 'log' | 'webhook', events: number) => void;
}

function logSink(settings: AuditSettings['log'], { log, dropped }: Parts): Sink | undefined {
  if (settings === null) return undefined;
  if (settings.path === '-') return standardOutputSink();
  return new FileSink({ ...settings, log, dropped: (events) => dropped('log', events) });
}

function webhookSink(settings: AuditSettings['webhook'], { secrets, log, dropped }: Parts): Sink | undefined {
  if (settings === null) return undefined;
  const { tokenRef } = settings;
  const token = (): string | undefined => tokenRef && secrets.read(tokenRef);
  return new WebhookSink({ ...settings, token, log, dropped: (events) => dropped('webhook', events) });
}

interface ConfiguredSink {
  readonly settings: string;
  readonly sink: Sink | undefined;
}

/**
 * Returns the old sink if its settings are unchanged. Otherwise creates a new sink, while the old sink delivers its
 * remaining events.
 */
function updated(old: ConfiguredSink | undefined, next: unknown, make: () => Sink | undefined): ConfiguredSink {
  const settings = JSON.stringify(next);
  if (old?.settings === settings) return old;
  void old?.sink?.close();
  return { settings, sink: make() };
}

/** Sinks according to the configuration in force. */
export class Sinks {
  readonly #parts: Parts;
  #log: ConfiguredSink | undefined;
  #webhook: ConfiguredSink | undefined;
  #current: readonly Sink[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  start(): void {
    const parts = this.#parts;
    parts.config.subscribe(({ audit }) => {
      this.#log = updated(this.#log, audit.log, () => logSink(audit.log, parts));
      this.#webhook = updated(this.#webhook, audit.webhook, () => webhookSink(audit.webhook, parts));
      this.#current = [this.#log.sink, this.#webhook.sink].filter((sink) => sink !== undefined);
    });
  }

  get current(): readonly Sink[] {
    return this.#current;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#current.map((sink) => sink.close()));
  }
}
