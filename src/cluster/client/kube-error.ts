import { badGateway, serviceUnavailable, StatusError, type Status, type StatusReason } from '../../runtime/errors.ts';

/**
 * Matches a refused impersonation. Only this server impersonates, so this refusal is not due to missing rights of the
 * caller.
 */
const impersonationRefused = / cannot impersonate resource "/;

/**
 * Error for a response of kube-apiserver other than 2xx, or for a missing response. `code` is the HTTP status, or 0 if
 * there was no response.
 */
export class KubeError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly status: Partial<Status>;

  constructor(code: number, status: Partial<Status>, cause?: unknown) {
    super(status.message ?? `kube-apiserver returned ${code}`, cause === undefined ? undefined : { cause });
    this.name = 'KubeError';
    this.code = code;
    this.reason = status.reason ?? '';
    this.status = status;
  }

  static from(code: number, body: string): KubeError {
    try {
      const status = JSON.parse(body) as Partial<Status>;
      if (status.kind === 'Status') return new KubeError(code, status);
    } catch {
      // The body is not a Status, so its text becomes the message.
    }
    return new KubeError(code, { message: body.slice(0, 500) || `kube-apiserver returned ${code}` });
  }

  /** Converts the error to a response of this server: 4xx is forwarded, other codes become 502 or 503. */
  toStatusError(): StatusError {
    if (this.code === 0) return serviceUnavailable('kube-apiserver cannot be reached', 1, this);
    if (this.code === 401)
      return serviceUnavailable("kube-apiserver does not accept this server's credentials", 5, this);
    if (this.code === 429 || this.code === 503 || this.code === 504)
      return serviceUnavailable('kube-apiserver is temporarily unavailable', 1, this);
    if (this.code === 403 && impersonationRefused.test(this.message)) return this.toOwnStatusError();
    if (this.code >= 400 && this.code < 500)
      return new StatusError((this.reason || 'BadRequest') as StatusReason, this.code, this.message, {
        cause: this,
        ...(this.status.details === undefined ? {} : { details: this.status.details }),
      });
    return badGateway('kube-apiserver returned an error', { cause: this });
  }

  /**
   * Converts the error of a request that this server sent as itself. A 403 becomes 503, because the caller did not
   * cause the refusal. A starting kube-apiserver refuses every request.
   */
  toOwnStatusError(): StatusError {
    return this.code === 403
      ? serviceUnavailable("kube-apiserver currently refuses this server's requests", 1, this)
      : this.toStatusError();
  }
}

export const unreachable = (cause: unknown): KubeError =>
  isKubeError(cause, 0)
    ? cause
    : new KubeError(
        0,
        { message: `kube-apiserver cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}` },
        cause,
      );

export const isKubeError = (error: unknown, code: number): error is KubeError =>
  error instanceof KubeError && error.code === code;
