import { beforeAll, describe, expect, test } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { certificatesIn, expiresSoon, isSignedBy, leafProblem } from '../../../../src/cli/doctor/certificates.ts';
import { newAuthority, newLeaf } from '../../../../src/tls/issuing.ts';
import { goodAuthority, goodLeaf, makeChain } from '../../../fakes/certificate-chains.ts';

const day = 86_400_000;
const now = Date.now();
const host = 'platform-apiserver.platform-system.svc';

let authority: Awaited<ReturnType<typeof newAuthority>>;
let other: typeof authority;
let leaf: X509Certificate;
beforeAll(async () => {
  [authority, other] = await Promise.all([newAuthority(now), newAuthority(now + 1_000)]);
  leaf = new X509Certificate((await newLeaf(authority, [host], now)).cert);
});

describe('the serving certificate', () => {
  test('a valid certificate for the name of the Service is accepted', () => {
    expect(leafProblem(leaf, host, now)).toBeUndefined();
  });

  test.each([
    ['for another name', 'other.svc', 0, `is not valid for other.svc, but for DNS:${host}`],
    ['expired', host, 366 * day, 'expired on '],
    ['not valid yet', host, -2 * day, 'is not valid before '],
  ])('a certificate that is %s is rejected', (_, name, later, expected) => {
    expect(leafProblem(leaf, name, now + later)).toContain(expected);
  });

  test('a certificate is rejected if the host name is only its common name and not a subject alternative name', async () => {
    const { cert } = await newLeaf(authority, ['192.0.2.1'], now);
    expect(leafProblem(new X509Certificate(cert), 'platform-apiserver', now)).toBe(
      'is not valid for platform-apiserver, but for IP Address:192.0.2.1',
    );
  });

  test('a certificate without the extended key usage for servers is rejected', async () => {
    const client = { ...leafFields(leaf), keyUsage: ['1.3.6.1.5.5.7.3.2'] } as unknown as X509Certificate;
    expect(leafProblem(client, host, now)).toBe('is not allowed to identify servers');
  });

  test('a certificate is reported as expiring soon in the last two weeks before it expires', () => {
    const end = leaf.validToDate.getTime();
    expect([expiresSoon(leaf, end - 15 * day), expiresSoon(leaf, end - 13 * day)]).toEqual([false, true]);
  });
});

const leafFields = (one: X509Certificate): object => ({
  checkHost: () => host,
  validFromDate: one.validFromDate,
  validToDate: one.validToDate,
});

const signedAt = (time: number): boolean =>
  isSignedBy({ leaf, intermediates: [] }, certificatesIn(authority.cert), time);
const signed = (...bundle: readonly string[]): boolean =>
  isSignedBy({ leaf, intermediates: [] }, certificatesIn(bundle.join('\n')), now);

describe('the caBundle', () => {
  test('a caBundle is accepted only if it contains the CA that signed the certificate', () => {
    expect(signed(authority.cert)).toBe(true);
    expect(signed(other.cert, authority.cert)).toBe(true);
    expect(signed(other.cert)).toBe(false);
    expect(signed()).toBe(false);
  });

  test('a caBundle is accepted if it contains the certificate itself, or a CA that signed it through intermediates', () => {
    expect(signed(leaf.toString())).toBe(true);
    const chain = { leaf, intermediates: [new X509Certificate(other.cert), new X509Certificate(authority.cert)] };
    expect(isSignedBy(chain, certificatesIn(authority.cert), now)).toBe(true);
    expect(isSignedBy(chain, certificatesIn(other.cert), now)).toBe(false);
  });

  test('a caBundle is rejected if its certificate has expired, is not valid yet or is not a CA', async () => {
    expect([now, now + 3_651 * day, now - 2 * day].map(signedAt)).toEqual([true, false, false]);
    const links = [goodLeaf, { ...goodAuthority, isCA: false, keyUsage: 'none' as const }];
    const spec = { commonName: 'a', links, trusted: [false, true], presented: [] };
    const { presented, authorities } = await makeChain(spec);
    expect(
      isSignedBy(
        { leaf: new X509Certificate(presented[0] as string), intermediates: [] },
        certificatesIn(authorities.join('\n')),
        now,
      ),
    ).toBe(false);
  });

  test('a caBundle without PEM contains no certificates, while a malformed certificate in PEM causes an error', () => {
    expect(certificatesIn('nothing')).toEqual([]);
    expect(() => certificatesIn('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----')).toThrow('asn1');
  });
});
