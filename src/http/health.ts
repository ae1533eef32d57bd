/** /livez, /readyz and /healthz as kube-apiserver has them (k8s.io/apiserver pkg/server/healthz): each check by name. */
import type { Response } from 'express';
import { noSuchPath } from '../runtime/errors.ts';
import type { HealthCheck } from '../runtime/lifecycle.ts';
import type { Access, UnmatchedPaths } from './access.ts';
import { defineRoute } from './define-route.ts';
import { lenientParameters } from './request/parameters.ts';
import type { ResponseDescriptions, Route } from './route.ts';
import { described, list, text } from './schema.ts';
import { endWith } from './response/write.ts';

/** In the order in which they are listed. */
type Checks = () => readonly HealthCheck[];

const ping: HealthCheck = { name: 'ping', problem: () => '', warning: () => '' };

const access = { kind: 'optional', parameter: 'verbose' } as const satisfies Access;
const verbose = described('Names every check; needs an identity', text.optional());
export const unmatchedHealth: UnmatchedPaths = { paths: /^\/(?:healthz|livez|readyz)\//, access };

export class Health {
  readonly #checks: Checks;
  #isDraining = false;

  /** `checks` are those of all components, of which this is one. */
  constructor(checks: Checks) {
    this.#checks = checks;
  }

  problem(): string {
    return this.#isDraining ? 'the server is shutting down' : '';
  }

  /** From now on load balancers should route requests elsewhere. */
  drain(): void {
    this.#isDraining = true;
  }

  get routes(): readonly Route[] {
    return [
      ...routesOf('/livez', 'Whether the process works', () => [ping]),
      ...routesOf('/readyz', 'Whether the server can answer', this.#checks),
      ...routesOf('/healthz', 'The same as /readyz, under its old name', this.#checks),
    ];
  }
}

const report = { 'text/plain': text };
const responses: ResponseDescriptions = {
  200: { description: 'Yes', content: report },
  503: {
    description: 'No',
    content: report,
    headers: { 'Retry-After': 'Seconds' },
  },
};

function routesOf(path: string, summary: string, checks: Checks): Route[] {
  const probe = path.slice(1);
  return [
    defineRoute({
      method: 'get',
      path,
      summary,
      access,
      query: lenientParameters({
        verbose,
        exclude: described('A check to leave out; may be repeated', list(text).default([])),
      }),
      responses,
      handler({ res, context: { user }, query: { verbose: isVerbose, exclude } }) {
        const included = checks().filter(({ name }) => !exclude.includes(name));
        answer(probe, included, res, isVerbose !== undefined && user !== undefined);
      },
    }),
    defineRoute({
      method: 'get',
      path: `${path}/:check`,
      summary: `${summary}: one check`,
      access,
      pathParameters: { check: 'Such as ping; /readyz?verbose names them' },
      query: lenientParameters({ verbose }),
      responses,
      handler({ res, context: { user }, path: { check }, query: { verbose: isVerbose } }) {
        const named = checks().filter(({ name }) => name === check);
        if (named.length === 0) throw noSuchPath();
        answer(probe, named, res, isVerbose !== undefined && user !== undefined);
      },
    }),
  ];
}

/** Names and reasons only for callers with an identity: they tell an attacker what to wait for. */
function answer(probe: string, checks: readonly HealthCheck[], res: Response, isVerbose: boolean): void {
  const results = checks.map((check) => ({ name: check.name, problem: check.problem(), warning: check.warning() }));
  const failed = results.some(({ problem }) => problem !== '');
  const lines = results.map(({ name, problem, warning }) =>
    problem === '' ? `[+]${name} ok${warning === '' ? '' : ` (warning: ${warning})`}` : `[-]${name} failed: ${problem}`,
  );
  const summary = failed ? `${probe} check failed\n` : 'ok';
  res.statusCode = failed ? 503 : 200;
  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  if (failed) res.setHeader('Retry-After', '1');
  endWith(res, isVerbose ? `${lines.join('\n')}\n${probe} check ${failed ? 'failed' : 'passed'}\n` : summary);
}
