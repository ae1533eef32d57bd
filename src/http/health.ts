/** Serves /livez, /readyz and /healthz as kube-apiserver does (k8s.io/apiserver pkg/server/healthz). */
import type { Response } from 'express';
import { pathNotFound } from '../runtime/errors.ts';
import type { HealthCheck } from '../runtime/lifecycle.ts';
import type { Access } from './access.ts';
import { defineRoute } from './define-route.ts';
import { lenientParameters } from './request/parameters.ts';
import type { ResponseDescriptions, Route } from './route.ts';
import { described, list, text } from './schema.ts';
import { endWith } from './response/write.ts';

/** Checks in the order in which a response lists them. */
type Checks = () => readonly HealthCheck[];

const ping: HealthCheck = { name: 'ping', problem: () => '', warning: () => '' };

const access = { kind: 'optional', parameter: 'verbose' } as const satisfies Access;
const verbose = described(
  'List the checks. Ignored without valid credentials; otherwise requires the right to `get` the path',
  text.optional(),
);
export class Health {
  readonly #checks: Checks;
  #isDraining = false;

  /** `checks` returns the checks of all components, including this one. */
  constructor(checks: Checks) {
    this.#checks = checks;
  }

  problem(): string {
    return this.#isDraining ? 'the server is shutting down' : '';
  }

  /** Makes /readyz and /healthz fail, so that load balancers send requests to other replicas. */
  drain(): void {
    this.#isDraining = true;
  }

  get routes(): readonly Route[] {
    return [
      ...routesOf('/livez', 'Succeeds while the process responds.', () => [ping]),
      ...routesOf(
        '/readyz',
        'Succeeds while the server can serve requests. Fails at startup until the required data has been read, and during shutdown.',
        this.#checks,
      ),
      ...routesOf('/healthz', 'The same as `/readyz`, for clients of the older path.', this.#checks),
    ];
  }
}

const report = { 'text/plain': text };
const responses: ResponseDescriptions = {
  200: { description: 'The checks succeeded', content: report },
  503: {
    description: 'A check failed',
    content: report,
    headers: { 'Retry-After': 'Seconds to wait before the next request' },
  },
};

function routesOf(path: string, description: string, checks: Checks): Route[] {
  const probe = path.slice(1);
  const subject = probe === 'livez' ? 'liveness' : 'readiness';
  return [
    defineRoute({
      method: 'get',
      path,
      summary: `Check ${subject}`,
      description,
      access,
      query: lenientParameters({
        verbose,
        exclude: described('Name of a check to skip; can be repeated', list(text).default([])),
      }),
      responses,
      handler({ res, context: { user }, query: { verbose: isVerbose, exclude } }) {
        const included = checks().filter(({ name }) => !exclude.includes(name));
        respond(probe, included, res, isVerbose !== undefined && user !== undefined);
      },
    }),
    defineRoute({
      method: 'get',
      path: `${path}/:check`,
      summary: `Run one ${subject} check`,
      description: `Runs one of the checks of \`${path}\`. Responds with 404 if there is no check with this name.`,
      access,
      pathParameters: { check: `Name of the check; \`${path}?verbose\` lists the names` },
      query: lenientParameters({ verbose }),
      responses,
      handler({ res, context: { user }, path: { check }, query: { verbose: isVerbose } }) {
        const named = checks().filter(({ name }) => name === check);
        if (named.length === 0) throw pathNotFound();
        respond(probe, named, res, isVerbose !== undefined && user !== undefined);
      },
    }),
  ];
}

/**
 * Writes the results. Only authenticated callers see names and reasons, which would help an attacker to time an attack.
 */
function respond(probe: string, checks: readonly HealthCheck[], res: Response, isVerbose: boolean): void {
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
