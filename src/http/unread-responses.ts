import { addressKeys } from '../runtime/shares.ts';

interface UnreadResponse {
  readonly sourceIP: string;
  cut(): void;
}

/**
 * Responses that hold no slot while their clients read them. Beyond `max`, the oldest response of the address or IPv6 /48 that has the
 * most is cut: a client that does not read loses its own responses before those of others.
 */
export class UnreadResponses {
  readonly #max: number;
  readonly #byNetwork = new Map<string, Set<UnreadResponse>>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns the function that removes the response; it may be called again. */
  add(response: UnreadResponse): () => void {
    const network = addressKeys(response.sourceIP).at(-1) ?? '';
    const responses = this.#byNetwork.get(network) ?? new Set();
    this.#byNetwork.set(network, responses.add(response));
    this.#size += 1;
    if (this.#size > this.#max) this.#cutOne();
    return () => this.#remove(network, response);
  }

  #cutOne(): void {
    let network = '';
    let most = 0;
    for (const [key, { size }] of this.#byNetwork) if (size > most) [network, most] = [key, size];
    const [oldest] = this.#byNetwork.get(network) ?? [];
    if (oldest === undefined) return;
    this.#remove(network, oldest);
    oldest.cut();
  }

  #remove(network: string, response: UnreadResponse): void {
    const responses = this.#byNetwork.get(network);
    if (responses?.delete(response) !== true) return;
    this.#size -= 1;
    if (responses.size === 0) this.#byNetwork.delete(network);
  }
}
