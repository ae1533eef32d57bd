import { addressKeys } from '../runtime/shares.ts';

interface UnreadResponse {
  readonly sourceIP: string;
  cut(): void;
}

/**
 * Responses that hold no slot while their clients read them. Above `max`, the address or IPv6 /48 with the most
 * responses loses its oldest response. A client that does not read therefore loses its own responses before other
 * clients lose theirs.
 */
export class UnreadResponses {
  readonly #max: number;
  readonly #byNetwork = new Map<string, Set<UnreadResponse>>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns an idempotent function that removes the response. */
  add(response: UnreadResponse): () => void {
    const network = addressKeys(response.sourceIP).at(-1) ?? '';
    const responses = this.#byNetwork.get(network) ?? new Set();
    this.#byNetwork.set(network, responses.add(response));
    this.#size += 1;
    if (this.#size > this.#max) this.#cutOldest();
    return () => this.#remove(network, response);
  }

  #cutOldest(): void {
    let network = '';
    let largest = 0;
    for (const [key, { size }] of this.#byNetwork) if (size > largest) [network, largest] = [key, size];
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
