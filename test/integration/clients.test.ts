/**
 * Unmodified public clients. They get the same core nodes from the gateway as from kube-apiserver. The aggregated nodes
 * differ from the core nodes only in the documented differences.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { differences, type Difference } from '../clients/differences.ts';
import { changedByGateway, differencesIn, goCases, pythonCases, type Seen } from '../labs/integration/cases.ts';
import { forgetPast } from '../labs/integration/control-plane.ts';
import { described } from '../labs/integration/described.ts';

type Found = Omit<Difference, 'reason'>;

const order = (one: Found, other: Found): number =>
  JSON.stringify([one.case, one.at, one.via]) < JSON.stringify([other.case, other.at, other.via]) ? -1 : 1;

const written = (of: Seen): Found[] =>
  differences
    .filter((difference) => of.has(difference.case))
    .map((difference) => Object.fromEntries(Object.entries(difference).filter(([key]) => key !== 'reason')) as Found);

// Discards the history of kube-apiserver, so that kube-apiserver and this server reject the same old resourceVersions.
beforeAll(async () => {
  await forgetPast();
  await described();
});

const met = new Set<string>();

describe.each([
  ['client-go and controller-runtime', goCases, 270],
  ['the Python client', pythonCases, 11],
] as const)('%s', (_, run, min) => {
  let seen: Seen = new Map();

  test('the client programs complete every case at kube-apiserver, at the gateway, through the aggregator and directly at the server', async () => {
    seen = await run();
    expect(seen.size).toBeGreaterThanOrEqual(min);
    for (const [name, results] of seen) {
      met.add(name);
      expect({ name, targets: Object.keys(results).toSorted() }).toEqual({
        name,
        targets: ['aggregated', 'core', 'direct', 'gateway'],
      });
      expect(JSON.stringify({ name, results })).not.toContain('"broken"');
    }
  }, 300_000);

  test('the client programs get the same results from the gateway as from kube-apiserver', () => {
    expect(changedByGateway(seen)).toEqual([]);
  });

  test('the client programs find only the documented differences between platform nodes and core nodes', () => {
    expect(differencesIn(seen).toSorted(order)).toEqual(written(seen).toSorted(order));
  });
});

test('every documented difference belongs to a case that was run, and has a reason', () => {
  expect(differences.filter((difference) => !met.has(difference.case) || difference.reason.length < 20)).toEqual([]);
});
