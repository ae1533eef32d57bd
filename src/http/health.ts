/** /livez, /readyz and /healthz as kube-apiserver has them (k8s.io/apiserver pkg/server/healthz): each check by name. */
import type { Response } from 'express';
import { noSuchPath } from '../runtime/errors.ts';
import type { HealthCheck } from '../runtime/lifecycle.ts';
import { type Access, type UnmatchedPaths } from './access.ts';
import { inPath, inQuery, type ResponseDescriptions, type RequestContext, type Route } from './route.ts';
import { list, text } from './schema.ts';
import { endWith } from './response/write.ts';

/** In the order in which they are listed. */
type Checks = () => readonly HealthCheck[];

const ping: HealthCheck = { name: 'ping', problem: () => '', warning: () => '' };

const verbose = inQuery('verbose', 'Names every check; needs an identity');
const access: Access = { kind: 'optional', parameter: verbose.name };
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
const answers: ResponseDescriptions = {
  200: { description: 'Yes', content: report },
  503: {
    description: 'No',
    content: report,
    headers: { 'Retry-After': 'Seconds' },
  },
};

function routesOf(path: string, summary: string, checks: Checks): Route[] {
  return [
    {
      method: 'get',
      path,
      summary,
      access,
      parameters: [verbose, inQuery('exclude', 'A check to leave out; may be repeated', list(text))],
      answers,
      handler: (_req, res, context) => {
        const excluded = new Set(context.query.getAll('exclude'));
        answer(
          path.slice(1),
          checks().filter((check) => !excluded.has(check.name)),
          res,
          context,
        );
      },
    },
    {
      method: 'get',
      path: `${path}/:check`,
      summary: `${summary}: one check`,
      access,
      parameters: [inPath('check', 'Such as ping; /readyz?verbose names them'), verbose],
      answers,
      handler: (req, res, context) => {
        const named = checks().filter((check) => check.name === req.params['check']);
        if (named.length === 0) throw noSuchPath();
        answer(path.slice(1), named, res, context);
      },
    },
  ];
}

/** Names and reasons only for callers with an identity: they tell an attacker what to wait for. */
function answer(probe: string, checks: readonly HealthCheck[], res: Response, { query, user }: RequestContext): void {
  const problems = checks.map((check) => ({ ...check, why: check.problem(), warns: check.warning() }));
  const failed = problems.some(({ why }) => why !== '');
  let told = failed ? `${probe} check failed\n` : 'ok';
  if (query.has('verbose') && user !== undefined)
    told = `${problems
      .map(({ name, why, warns }) =>
        why === '' ? `[+]${name} ok${warns === '' ? '' : ` (warning: ${warns})`}` : `[-]${name} failed: ${why}`,
      )
      .join('\n')}\n${probe} check ${failed ? 'failed' : 'passed'}\n`;
  res.statusCode = failed ? 503 : 200;
  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  if (failed) res.setHeader('Retry-After', '1');
  endWith(res, told);
}
