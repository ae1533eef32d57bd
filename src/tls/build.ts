import { X509Certificate } from 'node:crypto';
import type { ClusterParts } from '../cluster/build.ts';
import type { Flags } from '../config/flags.ts';
import { certificateExpiry } from '../runtime/metrics/definitions.ts';
import { ServingCertificate } from './serving-certificate.ts';
import { servingFromFiles, servingFromSecret } from './serving.ts';

export function buildCertificate(
  flags: Flags,
  { client, namespace, live, lifecycle, clock, log }: ClusterParts,
): ServingCertificate {
  const { tlsCertFile, tlsPrivateKeyFile } = flags;
  const hosts = () => hostsOf(flags, live.value.gateway.externalURL);
  const source =
    tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined
      ? servingFromFiles(tlsCertFile, tlsPrivateKeyFile)
      : servingFromSecret({ client, namespace, hosts, clock, log });
  const certificate = lifecycle.add(
    'serving-certificate',
    new ServingCertificate({ client, namespace, live, source, clock, log }),
  );
  certificateExpiry.read(() => [[{}, new X509Certificate(certificate.value.cert).validToDate.getTime() / 1_000]]);
  return certificate;
}

/** Returns the names and addresses of the TLS listeners. */
function hostsOf({ serviceName, namespace, bindAddress, aggregatedBindAddress }: Flags, externalURL: string): string[] {
  const service = [
    serviceName,
    `${serviceName}.${namespace}`,
    `${serviceName}.${namespace}.svc`,
    `${serviceName}.${namespace}.svc.cluster.local`,
  ];
  const bound = [bindAddress, aggregatedBindAddress].filter((address) => address !== '0.0.0.0' && address !== '::');
  const external = externalURL === '' ? [] : [new URL(externalURL).hostname.replace(/^\[|\]$/g, '')];
  return [...new Set([...service, 'localhost', '127.0.0.1', '::1', ...bound, ...external])];
}
