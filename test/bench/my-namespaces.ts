/**
 * Measures pages of "my namespaces": lists of a caller without cluster-wide rights whom RoleBindings name in a quarter
 * of all namespaces (ADR 16).
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from '../../hack/build.ts';
import { choosePorts } from '../../hack/cluster/ports.ts';
import { findAll, stop } from '../../hack/cluster/processes.ts';
import { until } from '../../hack/cluster/until.ts';
import { createKubeClient } from '../../src/cluster/client/client.ts';
import { labels, type Subject } from './cases.ts';
import { changesOf } from './changes.ts';
import { sendOnce, type Target } from './connection.ts';
import { concurrency, roundSeconds } from './job.ts';
import { measureCase } from './measure.ts';
import { member, memberNamespaces, teamNamespaces } from './objects.ts';
import { pageSize, paths } from './paths.ts';
import { callers, makeUsers } from './readers.ts';
import { problemOf, request, type Request } from './requests.ts';
import { putObjects } from './seed.ts';
import { startSite, type Site } from './site.ts';
import { figure } from './table.ts';

export interface MyNamespaces {
  /** Milliseconds of the first list, and the access reviews that the server sends for it. */
  readonly first: { readonly duration: number; readonly reviews: number };
  /** CPU time of a page in milliseconds: of the member, and of a caller who is allowed to list all namespaces. */
  readonly mine: number;
  readonly all: number;
  /** Access reviews per second while these pages are requested. */
  readonly reviewsPerSecond: number;
  readonly problems: readonly string[];
}

/** Milliseconds until kube-apiserver's authorizer and our server have noticed all RoleBindings. */
const settle = 20_000;
const rounds = 5;
/** Name of the state folder. */
export const namespacesFolder = 'my-namespaces';

export async function measureMyNamespaces(dir: string, signal: AbortSignal): Promise<MyNamespaces> {
  await build();
  const site = await startSite(join(dir, namespacesFolder), { nodes: 0, pods: 0 }, await makeUsers());
  try {
    return await measure(site, signal);
  } finally {
    await site.close();
  }
}

async function measure(site: Site, signal: AbortSignal): Promise<MyNamespaces> {
  const { ours, kubeApiserver, dir, kubeconfig } = site;
  const { file } = await changesOf(site, 0);
  // kube-controller-manager would create objects in each namespace during the measurement.
  for (const one of findAll(dir)) if (one.name === 'kube-controller-manager') await stop(dir, one, 'SIGKILL');
  const { etcd } = await choosePorts(dir, ['etcd'], true);
  await putObjects(etcd, teamNamespaces(), 'making namespaces and role bindings', ours.check);
  await sleep(settle, undefined, { signal });
  const token = await memberToken(kubeconfig);
  const admin = ours.tokens.plain[0];
  // The caller with cluster-wide rights also sees the namespaces that every cluster has.
  const { body } = await sendOnce(ours.plain, page(0, admin).text);
  const { totalItems } = JSON.parse(String(body)) as { totalItems: number };
  const mine = page(memberNamespaces, token);

  const before = await reviews(ours.plain, admin);
  const begin = performance.now();
  await until('all namespaces of the member are listed', ours.check, async () => {
    const problem = problemOf(await sendOnce(ours.plain, mine.text), mine.expected);
    if (problem !== undefined) throw new Error(problem);
    return true;
  });
  const duration = performance.now() - begin;
  const first = { duration, reviews: (await reviews(ours.plain, admin)) - before };

  const subject = (label: string, one: Request): Subject => ({
    server: 'ours',
    label,
    job: {
      target: ours.plain,
      requests: Array.from({ length: callers }, () => one),
      pids: ours.pids,
      behind: kubeApiserver.pids,
      changes: file,
      concurrency,
      seconds: roundSeconds,
    },
  });
  const started = performance.now();
  const counted = await reviews(ours.plain, admin);
  const subjects = [subject(labels.plain, mine), subject(labels.all, page(totalItems, admin))];
  const rows = await measureCase({ subjects }, [], signal, rounds);
  const reviewsPerSecond = ((await reviews(ours.plain, admin)) - counted) / ((performance.now() - started) / 1_000);
  const [cpuOfMine = NaN, cpuOfAll = NaN] = rows.map(({ figures }) => figures.cpu);
  return {
    first,
    mine: cpuOfMine,
    all: cpuOfAll,
    reviewsPerSecond,
    problems: rows.flatMap(({ problems }) => problems),
  };
}

const page = (total: number, token: string | undefined): Request =>
  request(paths.myNamespaces, { items: pageSize, total }, { token });

async function memberToken(kubeconfig: string): Promise<string> {
  const kube = await createKubeClient({ kubeconfig });
  try {
    const path = `/api/v1/namespaces/${member.namespace}/serviceaccounts`;
    await kube.json(path, { method: 'POST', body: { metadata: { name: member.name } } });
    const body = { spec: { expirationSeconds: 3600 } };
    const { status } = await kube.json<{ status: { token: string } }>(`${path}/${member.name}/token`, {
      method: 'POST',
      body,
    });
    return status.token;
  } finally {
    await kube.close();
  }
}

/** Returns the number of access reviews that the server has sent. */
async function reviews(target: Target, token: string | undefined): Promise<number> {
  const { body } = await sendOnce(target, request(paths.metrics, {}, { token }).text);
  const counts = String(body).matchAll(/^platform_apiserver_access_review_duration_seconds_count\S* (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Returns the figures that have goals. */
export const namespaceFindings = ({ mine }: MyNamespaces) => ({ 'my namespaces: ms': mine });

export function describeMyNamespaces({ first, mine, all, reviewsPerSecond, problems }: MyNamespaces): string {
  if (problems.length > 0) return `my-namespaces: WRONG: ${problems.join('; ')}`;
  return [
    `my-namespaces: a page of ${pageSize} of ${memberNamespaces} namespaces in which role bindings name the caller`,
    `  first list ${figure(first.duration)} ms, ${first.reviews} access reviews; then ${figure(reviewsPerSecond)} reviews per second`,
    `  CPU ${figure(mine)} ms a page, ${figure(all)} ms for a caller who is allowed to list all namespaces`,
  ].join('\n');
}
