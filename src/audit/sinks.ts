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
  /** Told how many events did not get to a sink, 'log' or 'webhook'. */
  readonly dropped: (sink: string, events: number) => void;
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

interface Made {
  readonly settings: string;
  readonly sink: Sink | undefined;
}

/** The old one if nothing is changed; else what it has is still delivered. */
function remade(old: Made | undefined, wanted: unknown, make: () => Sink | undefined): Made {
  const settings = JSON.stringify(wanted);
  if (old?.settings === settings) return old;
  void old?.sink?.close();
  return { settings, sink: make() };
}

/** Where the configuration in force wants events to go. */
export class Sinks {
  readonly #parts: Parts;
  #log: Made | undefined;
  #webhook: Made | undefined;
  #current: readonly Sink[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  start(): void {
    const parts = this.#parts;
    parts.config.subscribe(({ audit }) => {
      this.#log = remade(this.#log, audit.log, () => logSink(audit.log, parts));
      this.#webhook = remade(this.#webhook, audit.webhook, () => webhookSink(audit.webhook, parts));
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
