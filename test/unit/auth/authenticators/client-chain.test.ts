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

/** Cache of keys and certificates, since signing costs more than verifying and most chains share certificates. */
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

/** A chain of a leaf, intermediates and a root. The root is trusted, and the client presents the other certificates. */
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

test.each<[string, string, ChainSpec]>([
  ['of a leaf that the trusted CA signed', 'accepted', specOf(chain({}, {}))],
  ['with an intermediate', 'accepted', specOf(chain({}, {}, {}))],
  ['with three intermediates in any order', 'accepted', specOf(chain({}, {}, {}, {}, {}), { presented: [3, 1, 2] })],
  ['with an intermediate that is not presented', 'rejected', specOf(chain({}, {}, {}), { presented: [] })],
  [
    'with an intermediate as the only trusted CA',
    'accepted',
    specOf(chain({}, {}, {}), { trusted: [false, true, false] }),
  ],
  ['without a trusted certificate', 'rejected', specOf(chain({}, {}, {}), { trusted: [false, false, false] })],
  ['of a leaf that is trusted itself', 'accepted', specOf(chain({}, {}), { trusted: [true, false] })],
  ['of a self-signed leaf', 'rejected', specOf(chain({}), { trusted: [false] })],
  ['with an intermediate that is not a CA', 'rejected', specOf(chain({}, { isCA: false, keyUsage: 'none' }, {}))],
  [
    'with an intermediate whose key usage does not include signing',
    'rejected',
    specOf(chain({}, { keyUsage: 'other' }, {})),
  ],
  ['of a CA certificate', 'rejected', specOf(chain({ isCA: true, keyUsage: 'certSign' }, {}))],
  ['of a trusted CA certificate', 'rejected', specOf(chain({ isCA: true, keyUsage: 'certSign' }), { trusted: [true] })],
  ['of a leaf that has expired', 'rejected', specOf(chain({ validity: 'past' }, {}))],
  ['of a leaf that is not valid yet', 'rejected', specOf(chain({ validity: 'future' }, {}))],
  ['with an expired intermediate', 'rejected', specOf(chain({}, { validity: 'past' }, {}))],
  ['with an expired trusted CA', 'rejected', specOf(chain({}, { validity: 'past' }))],
  ['of a server certificate', 'rejected', specOf(chain({ usage: 'server' }, {}))],
  ['with an intermediate for servers', 'rejected', specOf(chain({}, { usage: 'server' }, {}))],
  ['without extended key usages', 'accepted', specOf(chain({ usage: 'none' }, {}))],
  ['of a leaf for any usage', 'accepted', specOf(chain({ usage: 'any' }, {}))],
  ['with a trusted CA for any usage', 'accepted', specOf(chain({}, { usage: 'any' }))],
  ['of a leaf with the key usage of a CA', 'accepted', specOf(chain({ keyUsage: 'certSign' }, {}))],
  ['in which the client also presents the root', 'accepted', specOf(chain({}, {}, {}), { presented: [1, 2] })],
  ['beyond the path length of the trusted CA', 'rejected', specOf(chain({}, {}, { pathLength: 0 }))],
  ['within the path length of the trusted CA', 'accepted', specOf(chain({}, { pathLength: 0 }, { pathLength: 1 }))],
  ['with an unknown critical extension', 'rejected', specOf(chain({ unknown: 'critical' }, {}))],
  ['with an unknown critical extension of the trusted CA', 'rejected', specOf(chain({}, { unknown: 'critical' }))],
  ['of a leaf that another key signed', 'rejected', specOf(chain({ isForged: true }, {}))],
  ['with an intermediate that another key signed', 'rejected', specOf(chain({}, { isForged: true }, {}))],
  ['of a leaf that names another issuer', 'rejected', specOf(chain({ issuer: 'wrong' }, {}))],
  ['of a leaf that names its issuer in capitals', 'rejected', specOf(chain({ issuer: 'in capitals' }, {}))],
  ['of a leaf that is signed with SHA-1', 'rejected', specOf(chain({ hash: 'SHA-1' }, {}))],
  ['with a trusted CA that is self-signed with SHA-1', 'accepted', specOf(chain({}, { hash: 'SHA-1' }))],
  ['with name constraints', 'rejected', specOf(chain({}, { unknown: 'constraints' }, {}))],
])('a certificate chain %s is %s, as in kube-apiserver', async (_, outcome, spec) => {
  const accepted = outcome === 'accepted';
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

test('many CA certificates with the same name cause a bounded number of signature checks', async () => {
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
