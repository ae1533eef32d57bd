import type { PlatformConfiguration } from './schema.ts';

/** Returns whether a host name resolves only in the cluster, such as that of the chart's default issuer. */
export const isClusterName = (hostname: string): boolean => /\.svc(?:\.cluster\.local)?$/.test(hostname);

/**
 * Returns the URL at which browsers reach the HTTPS port, without a trailing slash; undefined if no such URL is
 * configured.
 */
export function publicURL({ gateway, authentication }: PlatformConfiguration): string | undefined {
  const { origin, hostname, pathname } = new URL(
    gateway.externalURL === '' ? authentication.issuer : gateway.externalURL,
  );
  return isClusterName(hostname) ? undefined : `${origin}${pathname.replace(/\/+$/, '')}`;
}
