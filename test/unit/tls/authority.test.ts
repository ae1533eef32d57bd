import { beforeAll, describe, expect, test } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createServer, connect } from 'node:tls';
import { duplexPair } from 'node:stream';
import { needsRenewal, newMaterial, renewed, type ServingMaterial } from '../../../src/tls/authority.ts';

const day = 86_400_000;
const hosts = ['platform-apiserver.platform-system.svc', 'localhost', '127.0.0.1', '::1'];
const now = Date.now();

let material: ServingMaterial;
beforeAll(async () => {
  material = await newMaterial(hosts, now);
});
const authority = (): X509Certificate => new X509Certificate(material['ca.crt']);
const leaf = (of = material): X509Certificate => new X509Certificate(of['tls.crt']);

describe('the serving certificate', () => {
  test('is signed by the CA, which is one, and is none itself', () => {
    expect(leaf().verify(authority().publicKey)).toBe(true);
    expect(leaf().checkIssued(authority())).toBe(true);
    expect([authority().ca, leaf().ca]).toEqual([true, false]);
    expect(leaf().keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  test.each([...hosts, 'other.example', '127.0.0.2'])('says whether it is for %s', (host) => {
    const found = isIP(host) === 0 ? leaf().checkHost(host) : leaf().checkIP(host);
    expect(found !== undefined).toBe(hosts.includes(host));
  });

  test('is valid from before it was made, so that clocks may differ, for at most a year', () => {
    expect(leaf().validFromDate.getTime()).toBeLessThan(now);
    expect(leaf().validToDate.getTime()).toBeLessThanOrEqual(now + 366 * day);
    expect(leaf().validToDate.getTime()).toBeLessThanOrEqual(authority().validToDate.getTime());
  });

  test('never has a number twice, and none of more than 20 octets', async () => {
    const all = [leaf(), authority(), leaf(await renewed(material, hosts, now))];
    const numbers = all.map(({ serialNumber }) => serialNumber);
    expect(new Set(numbers).size).toBe(3);
    for (const number of numbers) expect(number).toMatch(/^[0-7][0-9A-F]{1,39}$/);
  });

  test.each(['platform-apiserver.platform-system.svc', 'localhost'])(
    'lets a client that knows the CA in as %s',
    async (name) => {
      const [near, far] = duplexPair();
      const server = createServer({ key: material['tls.key'], cert: material['tls.crt'] });
      server.emit('connection', far);
      const client = connect({ socket: near, ca: material['ca.crt'], servername: name });
      await expect(
        new Promise<boolean>((resolve, reject) => {
          client.once('secureConnect', () => resolve(client.authorized));
          client.once('error', reject);
        }),
      ).resolves.toBe(true);
      client.destroy();
      far.destroy();
    },
  );
});

describe('a serving certificate is made anew', () => {
  test.each([
    ['not at once', hosts, 0, false],
    ['not before two thirds of its life', hosts, 240 * day, false],
    ['after two thirds of its life', hosts, 245 * day, true],
    ['when it has expired', hosts, 400 * day, true],
    ['for another name', [...hosts, 'new.example'], 0, true],
    ['for another address', [...hosts, '192.0.2.1'], 0, true],
    ['not for one name less', hosts.slice(1), 0, false],
  ])('%s', (_, wanted, later, is) => {
    expect(needsRenewal(material['tls.crt'], wanted, now + later)).toBe(is);
  });

  test('under the same CA, with another key, and is good again', async () => {
    const wanted = [...hosts, 'new.example'];
    const next = await renewed(material, wanted, now + 300 * day);
    expect(next['ca.crt']).toBe(material['ca.crt']);
    expect(next['ca.key']).toBe(material['ca.key']);
    expect(next['tls.key']).not.toBe(material['tls.key']);
    expect(leaf(next).verify(authority().publicKey)).toBe(true);
    expect(leaf(next).checkPrivateKey((await import('node:crypto')).createPrivateKey(next['tls.key']))).toBe(true);
    expect(needsRenewal(next['tls.crt'], wanted, now + 300 * day)).toBe(false);
  });

  test('and does not outlive its CA', async () => {
    const next = await renewed(material, hosts, now + 3_600 * day);
    expect(leaf(next).validToDate).toEqual(authority().validToDate);
  });
});
