/** Compares the events of every watch with a simple model: no event is missing or repeated, even for slow readers. */
import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { apisRoutes, kapisRoutes } from '../../../src/resources/routes.ts';
import { call, type Call, emptyCluster, FakeAuthorizer, fakeResource, node } from '../../labs/resources.ts';

const served = 'resources.platform.io/v1alpha3/nodes';

/** The labels of all objects by name, at one resourceVersion. */
type State = ReadonlyMap<string, Record<string, string>>;

interface Selector {
  readonly query: string;
  readonly sees: (name: string, labels: Record<string, string>) => boolean;
}

const selectors: readonly Selector[] = [
  { query: '', sees: () => true },
  { query: 'labelSelector=env', sees: (_, labels) => 'env' in labels },
  { query: 'labelSelector=env%3Dprod', sees: (_, { env }) => env === 'prod' },
  { query: 'labelSelector=env%21%3Dprod', sees: (_, { env }) => env !== 'prod' },
  { query: 'fieldSelector=metadata.name%3Da', sees: (name) => name === 'a' },
];
const forms = ['application/json', 'application/json;as=Table;v=v1;g=meta.k8s.io'];

/** The selectors that search for a value in the object. */
const lookUps: readonly Selector[] = [
  { query: 'fieldSelector=metadata.labels.env%3Dprod', sees: (_, { env }) => env === 'prod' },
  { query: 'fieldSelector=metadata.labels.env%21%3Dprod,metadata.labels.x%3D', sees: (_, { env }) => env !== 'prod' },
  { query: 'annotation=filling,!other&labelSelector=env', sees: (_, labels) => 'env' in labels },
];

const doors = [
  { path: `/apis/${served}`, routes: apisRoutes, all: selectors, accept: forms },
  { path: `/kapis/${served}`, routes: kapisRoutes, all: [...selectors, ...lookUps], accept: ['', ''] },
];

const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('put'),
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      env: fc.constantFrom('', 'dev', 'prod'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete'), name: fc.constantFrom('a', 'b', 'c', 'd') }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('relist'),
      name: fc.constantFrom('a', 'b'),
      env: fc.constantFrom('', 'prod'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('watch'),
      selector: fc.nat(),
      form: fc.nat(1),
      from: fc.nat(),
      stalled: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('stall'), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('read'), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('resume'), which: fc.nat() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('settle') }) },
);

/** Annotations that are so long that only a few events fit into the buffer of a reader. */
const annotations = { filling: 'x'.repeat(6000) };

interface SentEvent {
  readonly type: string;
  readonly name: string;
  readonly version: number;
}

/** A client that can reconnect, and the events that it has received. */
class Client {
  readonly selector: Selector;
  /** The resourceVersion at which the watch started; undefined if the watch started with the existing objects. */
  readonly from: number | undefined;
  readonly started: number;
  readonly #connect: (query: string) => Call;
  #call: Call;
  #sentEvents: SentEvent[] = [];

  constructor(selector: Selector, from: number | undefined, present: number, connect: (query: string) => Call) {
    this.selector = selector;
    this.from = from;
    this.started = from ?? present;
    this.#connect = connect;
    this.#call = this.#open(from);
  }

  #open(from: number | undefined): Call {
    return this.#connect(`${this.selector.query}${from === undefined ? '' : `&resourceVersion=${from}`}`);
  }

  set stalled(stalled: boolean) {
    if (stalled) this.#call.response.stalled = true;
    else this.#call.response.read();
  }

  get sentEvents(): SentEvent[] {
    return [
      ...this.#sentEvents,
      ...this.#call.response.events.map(({ type, object }) => {
        const [row] = (object['rows'] as { object: typeof object }[] | undefined) ?? [];
        const { name, resourceVersion } = (row?.object ?? object).metadata;
        return { type, name, version: Number(resourceVersion) };
      }),
    ];
  }

  /**
   * Reconnects at the last resourceVersion. Returns false without reconnecting if initial objects are missing, or if
   * the server would refuse the version.
   */
  resume(initial: number, isKnown: (version: number) => boolean): boolean {
    const { sentEvents } = this;
    if (this.from === undefined && sentEvents.length < initial) return false;
    const last = Math.max(this.started, ...sentEvents.map(({ version }) => version));
    if (!isKnown(last)) return false;
    this.stop();
    this.#sentEvents = sentEvents;
    this.#call = this.#open(last);
    return true;
  }

  stop(): void {
    this.#call.response.destroy();
    this.#call.abort();
  }
}

/** Resolves when a watch has started, in the same turn of the event loop: the caller's rights are known. */
const authorized = async (): Promise<void> => {
  for (let i = 0; i < 50; i += 1) await Promise.resolve();
};

const settle = async (): Promise<void> => {
  for (let i = 0; i < 8; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Returns the events that a watch sends between two consecutive versions. */
function naive(before: State, after: State, version: (name: string) => number, { sees }: Selector): SentEvent[] {
  const all: SentEvent[] = [];
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const was = before.get(name);
    const is = after.get(name);
    if (was === is) continue;
    const wasShown = was !== undefined && sees(name, was);
    const shows = is !== undefined && sees(name, is);
    const type = shows ? (wasShown ? 'MODIFIED' : 'ADDED') : 'DELETED';
    if (wasShown || shows) all.push({ type, name, version: version(name) });
  }
  return all;
}

test.each(doors)(
  'every watch of $path sends exactly the changes that match its selector',
  async ({ path, routes: routesOf, all, accept }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 5, maxLength: 60 }), async (events) => {
        const resource = fakeResource();
        const { store } = resource;
        const routes = routesOf({ authorizer: new FakeAuthorizer(), resources: [resource], ...emptyCluster });
        store.replace([], 1);
        let version = 1;
        /** The labels of all objects at each version, oldest first. */
        const history: { readonly version: number; readonly state: State }[] = [{ version, state: new Map() }];
        const clients: Client[] = [];
        const state = (): State => history.at(-1)?.state ?? new Map();
        const put = (name: string, env: string): void => {
          version += 1;
          const labels = env === '' ? {} : { env };
          history.push({ version, state: new Map(state()).set(name, labels) });
        };
        const stored = (name: string): ReturnType<typeof node> => {
          const at = history.findLast((entry, index) => entry.state.get(name) !== history[index - 1]?.state.get(name));
          return node(name, { resourceVersion: at?.version ?? 0, labels: state().get(name) ?? {}, annotations });
        };
        const remove = (name: string): void => {
          version += 1;
          const next = new Map(state());
          next.delete(name);
          history.push({ version, state: next });
        };
        const isKnown = (at: number): boolean => store.history.positionAfter(at) !== undefined;
        const clientOf = (which: number): Client | undefined => clients[which % Math.max(1, clients.length)];
        for (const step of events)
          if (step.do === 'put') {
            const type = state().has(step.name) ? 'MODIFIED' : 'ADDED';
            put(step.name, step.env);
            store.apply(type, stored(step.name));
          } else if (step.do === 'delete') {
            const labels = state().get(step.name);
            if (labels === undefined) continue;
            remove(step.name);
            store.apply('DELETED', node(step.name, { resourceVersion: version, labels, annotations }));
          } else if (step.do === 'relist') {
            // The new list contains a change, and lacks objects whose deletions, of unknown order, no watch has sent.
            put(step.name, step.env);
            const gone = ['c', 'd'].filter((name) => state().has(name));
            const present = [...state().keys()].filter((name) => !gone.includes(name));
            const { position } = store.history;
            store.replace(present.map(stored), version + gone.length);
            for (const { type, object } of store.history.from(position) ?? [])
              if (type === 'DELETED') remove(object.name);
          } else if (step.do === 'watch') {
            const known = history.filter((entry) => isKnown(entry.version));
            const from = step.from % 3 === 0 ? undefined : known[step.from % known.length]?.version;
            const headers = { accept: accept[step.form] ?? '' };
            const connect = (query: string): Call => {
              const started = call(routes, `${path}?watch=true&${query}`, { headers });
              started.response.stalled = step.stalled;
              return started;
            };
            clients.push(new Client(all[step.selector % all.length] as Selector, from, version, connect));
            await authorized();
          } else if (step.do === 'stall') {
            const client = clientOf(step.which);
            if (client !== undefined) client.stalled = true;
          } else if (step.do === 'read') {
            const client = clientOf(step.which);
            if (client !== undefined) client.stalled = false;
          } else if (step.do === 'resume') {
            await settle();
            const client = clientOf(step.which);
            const entry = history.find(({ version: at }) => at === client?.started);
            const initial = [...(entry?.state ?? [])].filter(([name, labels]) => client?.selector.sees(name, labels));
            client?.resume(initial.length, isKnown);
            await authorized();
          } else await settle();
        for (const client of clients) client.stalled = false;
        // A watch that searches for values needs several turns of the event loop.
        for (let i = 0; i < 10; i += 1) await settle();
        for (const { selector, from, started, sentEvents } of clients) {
          const at = history.findIndex((entry) => entry.version === started);
          const first = from === undefined ? sentEvents.slice(0, initialOf(history[at]?.state, selector).length) : [];
          expect(first.map(({ type, name }) => `${type} ${name}`)).toEqual(
            from === undefined ? initialOf(history[at]?.state, selector) : [],
          );
          const expected = history
            .slice(at + 1)
            .flatMap((entry, index) =>
              naive(history[at + index]?.state ?? new Map(), entry.state, () => entry.version, selector),
            );
          expect(sentEvents.slice(first.length)).toEqual(expected);
        }
        for (const client of clients) client.stop();
      }),
      { numRuns: 150 },
    );
  },
  60_000,
);

const initialOf = (state: State | undefined, { sees }: Selector): string[] =>
  [...(state ?? [])]
    .filter(([name, labels]) => sees(name, labels))
    .map(([name]) => `ADDED ${name}`)
    .toSorted();
