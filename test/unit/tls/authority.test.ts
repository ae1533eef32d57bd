// evidence: server-ca
import 'reflect-metadata';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createServer, connect } from 'node:tls';
import { duplexPair } from 'node:stream';
import {
  AuthorityKeyIdentifierExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate as Issued,
} from '@peculiar/x509';
import {
  needsRenewal,
  newMaterial,
  renew,
  trustedBy,
  renewIfDue,
  type ServingMaterial,
} from '../../../src/tls/authority.ts';

const day = 86_400_000;
const hosts = ['platform-apiserver.platform-system.svc', 'localhost', '127.0.0.1', '::1'];
const now = Date.now();

let material: ServingMaterial;
beforeAll(async () => {
  material = await newMaterial(hosts, now);
});
const authority = (): X509Certificate => new X509Certificate(material['ca.crt']);
const leaf = (of = material): X509Certificate => new X509Certificate(of['tls.crt']);

/** Reports whether a client that trusts these CAs accepts the serving certificate. */
async function isAccepted(of: ServingMaterial, ca: string, servername = 'localhost'): Promise<boolean> {
  const [near, far] = duplexPair();
  createServer({ key: of['tls.key'], cert: of['tls.crt'] }).emit('connection', far);
  const client = connect({ socket: near, ca, servername });
  try {
    return await new Promise<boolean>((resolve) => {
      client.once('secureConnect', () => resolve(client.authorized));
      client.once('error', () => resolve(false));
    });
  } finally {
    client.destroy();
    far.destroy();
  }
}

describe('the serving certificate', () => {
  test('the serving certificate is signed by the CA, and is not a CA itself', () => {
    expect(leaf().verify(authority().publicKey)).toBe(true);
    expect(leaf().checkIssued(authority())).toBe(true);
    expect([authority().ca, leaf().ca]).toEqual([true, false]);
    expect(leaf().keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  test.each([
    ...hosts.map((host) => ['valid', host] as const),
    ['invalid', 'other.example'] as const,
    ['invalid', '127.0.0.2'] as const,
  ])('the serving certificate is %s for %s', (outcome, host) => {
    const found = isIP(host) === 0 ? leaf().checkHost(host) : leaf().checkIP(host);
    expect(found !== undefined).toBe(outcome === 'valid');
  });

  test('the serving certificate is valid from shortly before its creation, for at most a year and not longer than its CA', () => {
    expect(leaf().validFromDate.getTime()).toBeLessThan(now);
    expect(leaf().validToDate.getTime()).toBeLessThanOrEqual(now + 366 * day);
    expect(leaf().validToDate.getTime()).toBeLessThanOrEqual(authority().validToDate.getTime());
  });

  test('the serving certificate has a unique serial number of at most 20 octets', async () => {
    const all = [leaf(), authority(), leaf(await renew(material, hosts, now))];
    const numbers = all.map(({ serialNumber }) => serialNumber);
    expect(new Set(numbers).size).toBe(3);
    for (const number of numbers) expect(number).toMatch(/^[0-7][0-9A-F]{1,39}$/);
  });

  test.each(['platform-apiserver.platform-system.svc', 'localhost'])(
    'the serving certificate is accepted under the name %s by a client that trusts the CA',
    async (name) => {
      expect(await isAccepted(material, trustedBy(material), name)).toBe(true);
    },
  );

  test('the serving certificate names the key of the CA that signed it, as strict clients require', () => {
    const [issued, issuer] = [material['tls.crt'], material['ca.crt']].map((pem) => new Issued(pem));
    const id = issuer?.getExtension(SubjectKeyIdentifierExtension)?.keyId;
    expect(id).toMatch(/^[0-9a-f]{40}$/);
    expect(issued?.getExtension(AuthorityKeyIdentifierExtension)?.keyId).toBe(id);
  });
});

describe('the renewal of a serving certificate', () => {
  test.each([
    ['is not renewed when it is new', hosts, 0, false],
    ['is not renewed before two thirds of its lifetime', hosts, 240 * day, false],
    ['is renewed after two thirds of its lifetime', hosts, 245 * day, true],
    ['is renewed when it has expired', hosts, 400 * day, true],
    ['is renewed when a name is added', [...hosts, 'new.example'], 0, true],
    ['is renewed when an address is added', [...hosts, '192.0.2.1'], 0, true],
    ['is not renewed when a name is removed', hosts.slice(1), 0, false],
  ])('a serving certificate %s', (_, wanted, later, is) => {
    expect(needsRenewal(material['tls.crt'], wanted, now + later)).toBe(is);
  });

  test('a renewed serving certificate has the same CA and a new key, and is valid again', async () => {
    const wanted = [...hosts, 'new.example'];
    const next = await renew(material, wanted, now + 300 * day);
    expect(next['ca.crt']).toBe(material['ca.crt']);
    expect(next['ca.key']).toBe(material['ca.key']);
    expect(next['tls.key']).not.toBe(material['tls.key']);
    expect(leaf(next).verify(authority().publicKey)).toBe(true);
    expect(leaf(next).checkPrivateKey((await import('node:crypto')).createPrivateKey(next['tls.key']))).toBe(true);
    expect(needsRenewal(next['tls.crt'], wanted, now + 300 * day)).toBe(false);
  });

  test('a renewed serving certificate does not outlive its CA', async () => {
    const next = await renew(material, hosts, now + 3_600 * day);
    expect(leaf(next).validToDate).toEqual(authority().validToDate);
  });
});

/** Returns the certificates in a bundle. */
const certificatesIn = (bundle: string): X509Certificate[] =>
  (bundle.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? []).map(
    (pem) => new X509Certificate(pem),
  );

function isSignedBy(pem: string, ca: X509Certificate): boolean {
  const issued = new X509Certificate(pem);
  return issued.checkIssued(ca) && issued.verify(ca.publicKey);
}

const isValid = ({ validFromDate, validToDate }: X509Certificate, at: number): boolean =>
  validFromDate.getTime() <= at && at < validToDate.getTime();

describe('a client that updates the CAs', () => {
  test('a client that updates the CAs once a year always trusts the server over forty years', async () => {
    let current = material;
    const authorities = new Set<string>();
    const signers = new Map<string, X509Certificate[]>();
    const signersOf = (issued: string, bundle: string): X509Certificate[] => {
      const found = signers.get(issued + bundle) ?? certificatesIn(bundle).filter((ca) => isSignedBy(issued, ca));
      signers.set(issued + bundle, found);
      return found;
    };
    /** The CA bundles of the last 360 days. A client can have any of these bundles. */
    const known: { readonly at: number; readonly bundle: string }[] = [];
    for (let at = now; at < now + 40 * 365 * day; at += 10 * day) {
      current = await renewIfDue(current, hosts, at);
      authorities.add(current['ca.crt']);
      known.push({ at, bundle: trustedBy(current) });
      while (known[0] !== undefined && known[0].at < at - 360 * day) known.shift();
      expect(isValid(leaf(current), at + 20 * day)).toBe(true);
      for (const bundle of new Set(known.map((one) => one.bundle)))
        expect(signersOf(current['tls.crt'], bundle).some((ca) => isValid(ca, at))).toBe(true);
    }
    expect(authorities.size).toBe(5);
  });
});

describe('the CA rotation', () => {
  const life = 3_650 * day;
  /** Creates the material of a server whose CA expires in `left` milliseconds. */
  const withLeft = (left: number): Promise<ServingMaterial> => newMaterial(hosts, now - life + left);

  test('the CA rotation changes nothing while no step is due', async () => {
    expect(await renewIfDue(material, hosts, now)).toBe(material);
    const announced = await renewIfDue(await withLeft(700 * day), hosts, now);
    expect(await renewIfDue(announced, hosts, now)).toBe(announced);
  });

  test('the CA rotation publishes a new CA two years before the current CA expires, and still signs with the current CA', async () => {
    const before = await withLeft(700 * day);
    const after = await renewIfDue(before, hosts, now);
    expect(after).toMatchObject({ 'ca.crt': before['ca.crt'], 'ca.key': before['ca.key'] });
    expect(certificatesIn(trustedBy(after))).toHaveLength(2);
    expect(trustedBy(after).startsWith(trustedBy(before))).toBe(true);
    expect(leaf(after).verify(new X509Certificate(before['ca.crt']).publicKey)).toBe(true);
  });

  test('the CA rotation switches to the new CA a year later, and clients trust the old CA until its expiry', async () => {
    const before = await renewIfDue(await withLeft(730 * day - 1), hosts, now);
    const after = await renewIfDue(before, hosts, now + 366 * day);
    expect(after).toMatchObject({ 'ca.crt': before['next-ca.crt'], 'ca.key': before['next-ca.key'] });
    expect(trustedBy(after)).toBe(trustedBy(before));
    const end = await renewIfDue(after, hosts, now + 731 * day);
    expect(certificatesIn(trustedBy(end)).map(({ raw }) => raw)).toEqual([new X509Certificate(after['ca.crt']).raw]);
  });

  test('the CA rotation switches to the new CA earlier if the current CA expires soon, and at once if it has expired', async () => {
    const near = await withLeft(100 * day);
    const announced = await renewIfDue(near, hosts, now);
    expect(announced['ca.crt']).toBe(near['ca.crt']);
    const followed = await renewIfDue(announced, hosts, now + 71 * day);
    expect(followed['ca.crt']).toBe(announced['next-ca.crt']);
    const ended = await renewIfDue(await withLeft(-day), hosts, now);
    expect(isValid(new X509Certificate(ended['ca.crt']), now)).toBe(true);
    expect(isValid(leaf(ended), now)).toBe(true);
  });

  test('clients can verify the server before and after each step of the CA rotation, whichever CA signs', async () => {
    const old = await withLeft(350 * day);
    const announced = await renewIfDue(await renewIfDue(old, hosts, now - 366 * day), hosts, now - day);
    const bundle = trustedBy(announced);
    expect(announced['previous-ca.crt']).toBeDefined();
    expect(certificatesIn(bundle)).toHaveLength(2);
    const before = await renew(old, hosts, now);
    expect(await isAccepted(before, bundle)).toBe(true);
    expect(await isAccepted(announced, bundle)).toBe(true);
    expect(await isAccepted(announced, trustedBy(old))).toBe(false);
  });
});
