// evidence: front-proxy-chain
import { expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { X509Certificate } from 'node:crypto';
import { verifiedUntil } from '../../../../src/auth/authenticators/client-chain.ts';
import {
  ChainKeys,
  chainSpecs,
  goodAuthority,
  goodLeaf,
  isAccepted,
  makeChain,
  type ChainSpec,
  type Link,
} from '../../../fakes/certificate-chains.ts';

const allowed = 'front-proxy-client';
const hour = 3_600_000;

/** Cached, since signing costs more than verifying and most chains share links. */
const shared = new ChainKeys();

async function verify(spec: ChainSpec, now = Date.now()): Promise<number | undefined> {
  const { presented, authorities } = await makeChain(spec, { shared });
  const [leaf, ...intermediates] = presented.map((pem) => new X509Certificate(pem));
  if (leaf === undefined) throw new Error('no leaf');
  return verifiedUntil(
    { leaf, intermediates },
    authorities.map((pem) => new X509Certificate(pem)),
    now,
  );
}

/** Leaf, intermediates and root; the root is trusted, the others are presented. */
const specOf = (links: readonly Link[], more: Partial<ChainSpec> = {}): ChainSpec => ({
  commonName: allowed,
  links,
  trusted: links.map((_, at) => at === links.length - 1),
  presented: links.slice(2).map((_, at) => at + 1),
  ...more,
});

const chain = (leaf: Partial<Link> = {}, ...authorities: Partial<Link>[]): Link[] => [
  { ...goodLeaf, ...leaf },
  ...authorities.map((one) => ({ ...goodAuthority, ...one })),
];

test.each<[string, ChainSpec, boolean]>([
  ['of a leaf that the authority signed', specOf(chain({}, {})), true],
  ['with an intermediate', specOf(chain({}, {}, {})), true],
  ['with three intermediates in any order', specOf(chain({}, {}, {}, {}, {}), { presented: [3, 1, 2] }), true],
  ['with an intermediate that is not presented', specOf(chain({}, {}, {}), { presented: [] }), false],
  ['with an intermediate as the only authority', specOf(chain({}, {}, {}), { trusted: [false, true, false] }), true],
  ['without a trusted certificate', specOf(chain({}, {}, {}), { trusted: [false, false, false] }), false],
  ['of a leaf that is trusted itself', specOf(chain({}, {}), { trusted: [true, false] }), true],
  ['of a self-signed leaf', specOf(chain({}), { trusted: [false] }), false],
  ['with an intermediate that is not a CA', specOf(chain({}, { isCA: false, keyUsage: 'none' }, {})), false],
  ['with an intermediate that must not sign', specOf(chain({}, { keyUsage: 'other' }, {})), false],
  ['of a CA', specOf(chain({ isCA: true, keyUsage: 'certSign' }, {})), false],
  ['of a CA that is trusted', specOf(chain({ isCA: true, keyUsage: 'certSign' }), { trusted: [true] }), false],
  ['of a leaf that has expired', specOf(chain({ validity: 'past' }, {})), false],
  ['of a leaf that is not valid yet', specOf(chain({ validity: 'future' }, {})), false],
  ['with an expired intermediate', specOf(chain({}, { validity: 'past' }, {})), false],
  ['with an expired authority', specOf(chain({}, { validity: 'past' })), false],
  ['of a server', specOf(chain({ usage: 'server' }, {})), false],
  ['with an intermediate for servers', specOf(chain({}, { usage: 'server' }, {})), false],
  ['without extended key usages', specOf(chain({ usage: 'none' }, {})), true],
  ['of a leaf for any usage', specOf(chain({ usage: 'any' }, {})), true],
  ['with an authority for any usage', specOf(chain({}, { usage: 'any' })), true],
  ['of a leaf whose key usage is that of a CA', specOf(chain({ keyUsage: 'certSign' }, {})), true],
  ['with a root that is presented too', specOf(chain({}, {}, {}), { presented: [1, 2] }), true],
  ['beyond the path length of the authority', specOf(chain({}, {}, { pathLength: 0 })), false],
  ['within the path length of the authority', specOf(chain({}, { pathLength: 0 }, { pathLength: 1 })), true],
  ['with an unknown critical extension', specOf(chain({ unknown: 'critical' }, {})), false],
  ['with an unknown critical extension of the authority', specOf(chain({}, { unknown: 'critical' })), false],
  ['of a leaf that another key signed', specOf(chain({ isForged: true }, {})), false],
  ['with an intermediate that another key signed', specOf(chain({}, { isForged: true }, {})), false],
  ['of a leaf that names another issuer', specOf(chain({ issuer: 'wrong' }, {})), false],
  ['of a leaf that names its issuer in capitals', specOf(chain({ issuer: 'in capitals' }, {})), false],
  ['of a leaf that is signed by SHA-1', specOf(chain({ hash: 'SHA-1' }, {})), false],
  ['with an authority that has signed itself by SHA-1', specOf(chain({}, { hash: 'SHA-1' })), true],
  ['with name constraints', specOf(chain({}, { unknown: 'constraints' }, {})), false],
])('a certificate chain %s is accepted or rejected as by kube-apiserver (row %#)', async (_, spec, accepted) => {
  expect(isAccepted(spec, allowed)).toBe(accepted);
  expect((await verify(spec)) !== undefined).toBe(accepted);
});

test('a certificate chain is valid until its first certificate expires', async () => {
  const now = Date.now();
  const links: Partial<Link>[] = [{}, {}, {}];
  for (const [at] of links.entries()) {
    const [leaf = {}, ...others] = links.map((one, other) =>
      other === at ? { ...one, validity: 'soon' as const } : one,
    );
    const until = (await verify(specOf(chain(leaf, ...others)))) ?? 0;
    expect(until).toBeGreaterThan(now + hour / 2);
    expect(until).toBeLessThan(now + 2 * hour);
  }
});

test("certificate chains are verified by the rules of Go's crypto/x509", async () => {
  await fc.assert(
    fc.asyncProperty(chainSpecs, async (spec) => {
      const accepted = isAccepted({ ...spec, commonName: allowed }, allowed);
      expect((await verify(spec)) !== undefined).toBe(accepted);
    }),
    { numRuns: 200 },
  );
});

test('many certificates of one name cause a bounded number of signature checks', async () => {
  const { presented } = await makeChain(specOf(chain({}, {}, {})));
  const [leaf] = presented.map((pem) => new X509Certificate(pem));
  const others = await Promise.all(
    Array.from({ length: 40 }, async () => (await makeChain(specOf(chain({}, {}, {})))).presented[1] as string),
  );
  const strangers = others.map((pem) => new X509Certificate(pem));
  if (leaf === undefined) throw new Error('no leaf');
  const signatures = jest.spyOn(X509Certificate.prototype, 'verify');
  expect(verifiedUntil({ leaf, intermediates: strangers }, [], Date.now())).toBeUndefined();
  expect(signatures.mock.calls.length).toBe(30);
  signatures.mockRestore();
});
