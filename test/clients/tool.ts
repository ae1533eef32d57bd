import type { Site } from './site.ts';

/** A version of a client that this project did not write, as a program or a folder. */
export interface Built {
  readonly version: string;
  readonly path: string;
}

/** Uses the client with the server. Throws if a result is wrong. */
export type Flow = (client: Built, site: Site) => Promise<void>;

export interface Tool {
  readonly name: string;
  build(): Promise<Built>;
  readonly flows: Readonly<Record<string, Flow>>;
}
