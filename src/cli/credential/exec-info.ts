/** The interface between kubectl and the plugin (client.authentication.k8s.io/v1 ExecCredential). */
import { UsageError } from '../../config/flags.ts';

const apiVersion = 'client.authentication.k8s.io/v1';

export interface ExecInfo {
  /** True if a user is at the terminal. */
  readonly interactive: boolean;
  /** URL of kubectl's cluster. */
  readonly server: string | undefined;
  /** CA of kubectl's cluster, in PEM. */
  readonly ca: string | undefined;
}

/** Parses KUBERNETES_EXEC_INFO. If the variable is not set, a user has called the plugin by hand. Throws UsageError. */
export function execInfoOf(text: string | undefined): ExecInfo {
  if (text === undefined) return { interactive: true, server: undefined, ca: undefined };
  let info: { apiVersion?: unknown; spec?: { interactive?: unknown; cluster?: Record<string, unknown> } };
  try {
    info = (JSON.parse(text) ?? {}) as typeof info;
  } catch {
    throw new UsageError('KUBERNETES_EXEC_INFO is not JSON');
  }
  if (info.apiVersion !== apiVersion)
    throw new UsageError(`exec.apiVersion in the kubeconfig: expected ${apiVersion}, got ${String(info.apiVersion)}`);
  const { server, 'certificate-authority-data': ca } = info.spec?.cluster ?? {};
  return {
    interactive: info.spec?.interactive === true,
    server: typeof server === 'string' ? server : undefined,
    ca: typeof ca === 'string' ? Buffer.from(ca, 'base64').toString('utf8') : undefined,
  };
}

/** Formats an ExecCredential. `expiresAt` is in milliseconds since the epoch. */
export const execCredential = (token: string, expiresAt: number): string =>
  JSON.stringify({
    apiVersion,
    kind: 'ExecCredential',
    status: { token, expirationTimestamp: new Date(expiresAt).toISOString() },
  });
