import { beforeEach, expect, test } from '@jest/globals';
import type { KubeRequest } from '../../../src/cluster/client/client.ts';
import { KubeError } from '../../../src/cluster/client/kube-error.ts';
import { OwnRights } from '../../../src/cluster/own-rights.ts';
import { FakeClock } from '../../labs/cluster-fakes.ts';

const pods = { group: '', resource: 'pods' };
let clock: FakeClock;
let reviewed: string[];
let allowed: ReadonlySet<string>;
let rights: OwnRights;
beforeEach(() => {
  clock = new FakeClock();
  reviewed = [];
  allowed = new Set(['list', 'watch']);
  rights = new OwnRights({
    clock,
    client: {
      async json<T>(path: string, { body }: KubeRequest = {}): Promise<T> {
        const { spec } = body as { spec: { resourceAttributes: { verb: string; resource: string } } };
        const { verb, resource } = spec.resourceAttributes;
        if (path !== '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews') throw new Error(path);
        reviewed.push(`${verb} ${resource}`);
        if (allowed.has('nothing')) throw new KubeError(0, {});
        return { status: { allowed: allowed.has(verb), denied: allowed.has('denied') } } as T;
      },
    },
  });
});

test('mayListAndWatch() returns true only if this server is allowed to both list and watch', async () => {
  expect(await rights.mayListAndWatch(pods)).toBe(true);
  expect(reviewed).toEqual(['list pods', 'watch pods']);
  allowed = new Set(['list']);
  expect(await rights.mayListAndWatch({ group: 'apps', resource: 'pods' })).toBe(false);
  allowed = new Set(['list', 'watch', 'denied']);
  expect(await rights.mayListAndWatch({ group: 'batch', resource: 'pods' })).toBe(false);
});

test("access reviews of the server's own permissions are cached for 5 s, or until forget() discards them", async () => {
  await Promise.all([rights.mayListAndWatch(pods), rights.mayListAndWatch(pods)]);
  expect(reviewed).toHaveLength(2);
  allowed = new Set();
  await clock.advance(4_000);
  expect(await rights.mayListAndWatch(pods)).toBe(true);
  await clock.advance(1_000);
  expect(await rights.mayListAndWatch(pods)).toBe(false);
  allowed = new Set(['list', 'watch']);
  rights.forget(pods);
  expect(await rights.mayListAndWatch(pods)).toBe(true);
});

test("a failed access review of the server's own permissions is repeated", async () => {
  allowed = new Set(['nothing']);
  await expect(rights.mayListAndWatch(pods)).rejects.toThrow(KubeError);
  allowed = new Set(['list', 'watch']);
  expect(await rights.mayListAndWatch(pods)).toBe(true);
});
