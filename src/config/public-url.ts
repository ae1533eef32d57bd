import type { PlatformConfiguration } from './schema.ts';

/** Names that resolve only in the cluster, such as the default issuer of the chart. */
const clusterName = /\.svc(?:\.cluster\.local)?$/;

/** Returns the URL at which browsers reach the HTTPS port, without a trailing slash; undefined if no such URL is configured. */
export function publicURL({ gateway, authentication }: PlatformConfiguration): string | undefined {
  const { origin, hostname, pathname } = new URL(
    gateway.externalURL === '' ? authentication.issuer : gateway.externalURL,
  );
  return clusterName.test(hostname) ? undefined : `${origin}${pathname.replace(/\/+$/, '')}`;
}
