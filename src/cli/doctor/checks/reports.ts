/**
 * Checks the health and metrics that each replica reports. These checks need the token of a ServiceAccount and a
 * connection to the pods.
 */
import { failed, notChecked, ok, warning, type Check, type Finding } from '../check.ts';
import { apiServices } from '../../../config/names.ts';
import { deploymentName, type Context } from '../context.ts';
import { getFrom, type Endpoint } from '../endpoint.ts';
import { mebibytes } from '../../../cluster/catalogue/memory-limit.ts';
import { thresholds } from '../../../runtime/thresholds.ts';
import { endpoints } from './workload.ts';
import { certificate, registrations } from './trust.ts';

const needs = [endpoints.name, certificate.name, registrations.name];

export const readiness: Check = {
  name: 'readiness',
  needs,
  run: (context) =>
    eachReplica(context, '/readyz?verbose', 'readyz', (text, where) =>
      readinessFindings(text, where, context.commands.inNamespace`logs deployment/${deploymentName} --tail=20`),
    ),
};

/**
 * Reads the response of /readyz?verbose. Its failures and warnings include problems of the log store and unresolved
 * references.
 */
export function readinessFindings(text: string, where: string, show: string): Finding[] {
  const findings = text.split('\n').flatMap((line) => {
    const [, failure, problem] = /^\[-\](.*) failed: (.*)$/.exec(line) ?? [];
    if (failure !== undefined) return [failed(`${where}: ${failure}: ${problem}`, show)];
    const [, component, reason] = /^\[\+\](.*) ok \(warning: (.*)\)$/.exec(line) ?? [];
    return component === undefined ? [] : [warning(`${where}: ${component}: ${reason}`, show)];
  });
  return findings.length === 0 ? [ok(`${where} reports no problem`)] : findings;
}

export const cache: Check = {
  name: 'cache',
  needs,
  async *run(context) {
    const raise = context.commands
      .helm`upgrade ${await context.release()} CHART --reuse-values --set config.cache.maxBytes=2Gi,resources.limits.memory=4Gi`;
    yield* eachReplica(context, '/metrics', 'metrics', (text, where) => cacheFindings(text, where, raise));
  },
};

/** Reads the size and the age of the cache from the metrics. `raise`: command that raises cache.maxBytes. */
export function cacheFindings(text: string, where: string, raise: string): Finding[] {
  const values = (name: string): { readonly resource: string; readonly value: number }[] =>
    [...text.matchAll(new RegExp(`^platform_apiserver_${name}(?:\\{resource="([^"]*)"\\})? (\\S+)$`, 'gm'))].map(
      ([, resource = '', value]) => ({ resource, value: Number(value) }),
    );
  const held = values('store_bytes').reduce((sum, { value }) => sum + value, 0);
  const limit = values('store_limit_bytes')[0]?.value ?? Infinity;
  const size = `${mebibytes(held)} of ${mebibytes(limit)} (cache.maxBytes)`;
  const old = values('store_age_seconds').filter(({ value }) => value > thresholds.cacheAge);
  return [
    held > thresholds.cacheSize * limit
      ? warning(`${where}: the cache is nearly full: ${size}; requests for further resources get 503`, raise)
      : ok(`${where} caches ${size}`),
    ...old.map(({ resource, value }) =>
      warning(`${where}: the cache of ${resource} has received nothing for ${Math.round(value)} s`),
    ),
  ];
}

/** Gets a path from each replica, and remembers the responses for the support bundle. */
async function* eachReplica(
  context: Context,
  path: string,
  file: string,
  findings: (text: string, where: string) => Finding[],
): AsyncGenerator<Finding> {
  const { caller, host, commands } = context;
  const inPod = caller.isInPod ? undefined : commands.helm`test ${await context.release()} --logs`;
  const token = await caller.serviceAccountToken();
  if (token === undefined) {
    yield notChecked('needs the token of a ServiceAccount, as in the pod of helm test', inPod);
    return;
  }
  const bundle = (await context.apiService(apiServices[0]))?.spec.caBundle;
  const ca = bundle === undefined ? undefined : Buffer.from(bundle, 'base64').toString('utf8');
  for (const endpoint of await context.endpoints()) {
    const where = nameOf(endpoint);
    try {
      const { status, text } = await getFrom(endpoint, { path, host, ca, token });
      if (status === 401) yield notChecked(`needs a token that ${where} accepts`);
      else if (status === 403) yield notChecked(`needs the right to get ${path.replace(/\?.*/, '')}`);
      else {
        context.reports.set(`${where}-${file}.txt`, text);
        yield* findings(text, where);
      }
    } catch (error) {
      yield notChecked(`needs a connection from this machine to ${where}: ${(error as Error).message}`, inPod);
    }
  }
}

const nameOf = ({ address, port }: Endpoint): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
