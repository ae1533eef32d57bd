/**
 * Creates client certificate chains with all kinds of faults, and computes whether kube-apiserver accepts each chain.
 */
import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  X509CertificateGenerator,
} from '@peculiar/x509';
import * as fc from 'fast-check';
import { webcrypto } from 'node:crypto';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const hour = 3_600_000;
const day = 24 * hour;

const usages = {
  client: ['1.3.6.1.5.5.7.3.2'],
  server: ['1.3.6.1.5.5.7.3.1'],
  both: ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'],
  any: ['2.5.29.37.0'],
  none: undefined,
} as const;

export interface Link {
  /** Validity period of the certificate. A certificate with the value `soon` expires in an hour. */
  readonly validity: 'now' | 'soon' | 'past' | 'future';
  readonly isCA: boolean;
  readonly pathLength: number | undefined;
  readonly keyUsage: 'certSign' | 'other' | 'none';
  readonly usage: keyof typeof usages;
  /** Kind of an additional extension: unknown and critical, unknown and not critical, or nameConstraints. */
  readonly unknown: 'critical' | 'harmless' | 'constraints' | 'none';
  /** True if the certificate names the issuer, but is signed with another key. */
  readonly isForged: boolean;
  /** Spelling of the issuer's name. */
  readonly issuer: 'as it is' | 'in capitals' | 'wrong';
  readonly hash: 'SHA-256' | 'SHA-1';
}

export interface ChainSpec {
  readonly commonName: string;
  /** Certificates of the chain, from the leaf to the root. */
  readonly links: readonly Link[];
  /** True for each certificate of the chain that is a trusted CA. */
  readonly trusted: readonly boolean[];
  /** Indices of the certificates that the client presents after the leaf, in the order of presentation. */
  readonly presented: readonly number[];
}

export interface Chain {
  /** Certificates in PEM; the first is the leaf. */
  readonly presented: readonly string[];
  readonly key: string;
  readonly authorities: readonly string[];
}

const good: Link = {
  validity: 'now',
  isCA: true,
  pathLength: undefined,
  keyUsage: 'certSign',
  usage: 'none',
  unknown: 'none',
  isForged: false,
  issuer: 'as it is',
  hash: 'SHA-256',
};
export const goodLeaf: Link = { ...good, isCA: false, keyUsage: 'other', usage: 'client' };
export const goodAuthority = good;

const mostly = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });

const link = ({ isCA, keyUsage, usage }: Link): fc.Arbitrary<Link> =>
  fc.record<Link>({
    validity: mostly<Link['validity']>('now', 'soon', 'past', 'future'),
    isCA: mostly(isCA, !isCA),
    pathLength: isCA ? mostly<number | undefined>(undefined, 0, 1, 2) : fc.constant(undefined),
    keyUsage: mostly(keyUsage, 'certSign', 'other', 'none'),
    usage: mostly(usage, ...(Object.keys(usages) as Link['usage'][])),
    unknown: mostly<Link['unknown']>('none', 'critical', 'harmless'),
    isForged: mostly(false, true),
    issuer: mostly<Link['issuer']>('as it is', 'in capitals', 'wrong'),
    hash: mostly<Link['hash']>('SHA-256', 'SHA-1'),
  });

/** Generates chains with up to three intermediate CAs. */
export const chainSpecs: fc.Arbitrary<ChainSpec> = fc.integer({ min: 2, max: 5 }).chain((length) =>
  fc.record<ChainSpec>({
    commonName: mostly('front-proxy-client', 'somebody-else'),
    links: fc.tuple(link(goodLeaf), ...Array.from({ length: length - 1 }, () => link(good))),
    trusted: fc.tuple(
      ...Array.from({ length }, (_, at) => (at === length - 1 ? mostly(true, false) : mostly(false, true))),
    ),
    presented: fc.shuffledSubarray(Array.from({ length: length - 1 }, (_, at) => at + 1)).chain((some) =>
      mostly(
        Array.from({ length: length - 1 }, (_, at) => at + 1),
        some,
        some.toReversed(),
      ),
    ),
  }),
);

const isFit = ({ validity, usage, unknown }: Link): boolean =>
  ['now', 'soon'].includes(validity) && usage !== 'server' && ['none', 'harmless'].includes(unknown);

/**
 * Applies the rules of Go's crypto/x509. Also rejects a leaf that is a CA, or whose common name is not `allowedName`.
 */
export function isAccepted({ commonName, links, trusted, presented }: ChainSpec, allowedName: string): boolean {
  const [leaf] = links;
  if (leaf === undefined || leaf.isCA || commonName !== allowedName || !isFit(leaf)) return false;
  for (let at = 0; ; at += 1) {
    if (trusted[at] === true) return true;
    const issuer = links[at + 1];
    const { isForged, issuer: named, hash } = links[at] as Link;
    const isSigned = !isForged && named === 'as it is' && hash === 'SHA-256';
    if (!isSigned || issuer === undefined) return false;
    const isAvailable = trusted[at + 1] === true || presented.includes(at + 1);
    const maySign = issuer.isCA && issuer.keyUsage !== 'other' && (issuer.pathLength ?? Infinity) >= at;
    if (!isAvailable || !maySign || !isFit(issuer)) return false;
  }
}

const generate = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);

/** Caches a key for each position in a chain, and the signatures, so that equal certificates are created only once. */
export class ChainKeys {
  readonly #keys = new Map<number, Promise<webcrypto.CryptoKeyPair>>();
  readonly #certificates = new Map<string, Promise<string>>();

  at(place: number): Promise<webcrypto.CryptoKeyPair> {
    return madeOnce(this.#keys, place, generate);
  }

  certificate(described: unknown, make: () => Promise<string>): Promise<string> {
    return madeOnce(this.#certificates, JSON.stringify(described), make);
  }
}

function madeOnce<K, V>(made: Map<K, V>, key: K, make: () => V): V {
  const value = made.get(key) ?? make();
  made.set(key, value);
  return value;
}

const dates = (validity: Link['validity']): { notBefore: Date; notAfter: Date } => {
  const shift = { past: -3 * day, now: 0, soon: hour - day, future: 3 * day }[validity];
  return { notBefore: new Date(Date.now() - day + shift), notAfter: new Date(Date.now() + day + shift) };
};

const keyUsageFlags = { certSign: KeyUsageFlags.keyCertSign, other: KeyUsageFlags.digitalSignature };

/** NameConstraints that permit the DNS names of example.com (RFC 5280 section 4.2.1.10). */
const permittedNames = Buffer.concat([Buffer.from('3011a00f300d820b', 'hex'), Buffer.from('example.com')]);

const extensionsOf = ({ isCA, pathLength, keyUsage, usage, unknown }: Link): Extension[] => {
  const listed = usages[usage];
  return [
    new BasicConstraintsExtension(isCA, pathLength, true),
    ...(keyUsage === 'none' ? [] : [new KeyUsagesExtension(keyUsageFlags[keyUsage], true)]),
    ...(listed === undefined ? [] : [new ExtendedKeyUsageExtension([...listed])]),
    ...(unknown === 'critical' || unknown === 'harmless'
      ? [new Extension('1.3.6.1.4.1.55555.1', unknown === 'critical', new Uint8Array([5, 0]))]
      : []),
    ...(unknown === 'constraints' ? [new Extension('2.5.29.30', false, permittedNames)] : []),
  ];
};

interface MakeOptions {
  /** CA that signs the chain instead of a new root. */
  readonly root?: { readonly name: string; readonly key: webcrypto.CryptoKey; readonly certificate: string };
  /** Keys to share with other chains. Default: new keys. */
  readonly shared?: ChainKeys;
}

export async function makeChain(
  { commonName, links, trusted, presented }: ChainSpec,
  { root, shared = new ChainKeys() }: MakeOptions = {},
): Promise<Chain> {
  const keys = await Promise.all(links.map((_, at) => shared.at(at)));
  const last = links.length - 1;
  const nameOf = (at: number): string =>
    at === 0 ? `CN=${commonName}` : at === last && root !== undefined ? root.name : `CN=ca-${at}`;
  const certificates = await Promise.all(
    links.map(async (one, at) => {
      if (at === last && root !== undefined) return root.certificate;
      const issuer = Math.min(at + 1, last);
      const own = issuer === last && root !== undefined ? root.key : keys[issuer]?.privateKey;
      return await shared.certificate([at, issuer, nameOf(at), nameOf(issuer), one], async () => {
        const certificate = await X509CertificateGenerator.create({
          subject: nameOf(at),
          issuer: { 'as it is': nameOf(issuer), 'in capitals': `CN=CA-${issuer}`, wrong: 'CN=wrong' }[one.issuer],
          publicKey: (keys[at] as webcrypto.CryptoKeyPair).publicKey,
          signingKey: one.isForged ? (await generate()).privateKey : (own as webcrypto.CryptoKey),
          signingAlgorithm: { ...algorithm, hash: one.hash },
          ...dates(one.validity),
          extensions: extensionsOf(one),
        });
        return `${certificate.toString('pem')}\n`;
      });
    }),
  );
  const key = await webcrypto.subtle.exportKey('pkcs8', (keys[0] as webcrypto.CryptoKeyPair).privateKey);
  return {
    presented: [0, ...presented].map((at) => certificates[at] as string),
    key: `${PemConverter.encode(key, 'PRIVATE KEY')}\n`,
    authorities: certificates.filter((_, at) => trusted[at] === true),
  };
}
