/** What kubectl and the plugin say to each other (client.authentication.k8s.io/v1 ExecCredential). */
import { UsageError } from '../../config/flags.ts';

const apiVersion = 'client.authentication.k8s.io/v1';

export interface ExecInfo {
  /** Somebody is there who can answer. */
  readonly interactive: boolean;
  /** Where kubectl is going to. */
  readonly server: string | undefined;
  /** PEM. */
  readonly ca: string | undefined;
}

/** KUBERNETES_EXEC_INFO; without it, somebody has called the plugin by hand. Throws UsageError. */
export function execInfoOf(text: string | undefined): ExecInfo {
  if (text === undefined) return { interactive: true, server: undefined, ca: undefined };
  let info: { apiVersion?: unknown; spec?: { interactive?: unknown; cluster?: Record<string, unknown> } };
  try {
    info = (JSON.parse(text) ?? {}) as typeof info;
  } catch {
    throw new UsageError('KUBERNETES_EXEC_INFO is no JSON');
  }
  if (info.apiVersion !== apiVersion)
    throw new UsageError(`the kubeconfig must have exec.apiVersion: ${apiVersion}, not ${String(info.apiVersion)}`);
  const { server, 'certificate-authority-data': ca } = info.spec?.cluster ?? {};
  return {
    interactive: info.spec?.interactive === true,
    server: typeof server === 'string' ? server : undefined,
    ca: typeof ca === 'string' ? Buffer.from(ca, 'base64').toString('utf8') : undefined,
  };
}

/** `expiresAt`: milliseconds since the epoch. */
export const execCredential = (token: string, expiresAt: number): string =>
  JSON.stringify({
    apiVersion,
    kind: 'ExecCredential',
    status: { token, expirationTimestamp: new Date(expiresAt).toISOString() },
  });
