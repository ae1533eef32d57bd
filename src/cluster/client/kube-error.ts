import { badGateway, serviceUnavailable, StatusError, type Status, type StatusReason } from '../../runtime/errors.ts';

/** Only this server impersonates, so the caller lacks no right. */
const impersonationRefused = / cannot impersonate resource "/;

/** What kube-apiserver answered instead of 2xx. `code` is the HTTP status, 0 when there was no answer at all. */
export class KubeError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly status: Partial<Status>;

  constructor(code: number, status: Partial<Status>, cause?: unknown) {
    super(status.message ?? `kube-apiserver answered ${code}`, cause === undefined ? undefined : { cause });
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
      // Not a Status: its text is the message.
    }
    return new KubeError(code, { message: body.slice(0, 500) || `kube-apiserver answered ${code}` });
  }

  /** The same refusal as our own answer: 4xx is passed on, anything else is the upstream's fault. */
  toStatusError(): StatusError {
    if (this.code === 0) return serviceUnavailable('kube-apiserver cannot be reached', 1, this);
    if (this.code === 401)
      return serviceUnavailable("kube-apiserver does not accept this server's credentials", 5, this);
    if (this.code === 429 || this.code === 503 || this.code === 504)
      return serviceUnavailable('kube-apiserver is not able to answer now', 1, this);
    if (this.code === 403 && impersonationRefused.test(this.message)) return this.toOwnStatusError();
    if (this.code >= 400 && this.code < 500)
      return new StatusError((this.reason || 'BadRequest') as StatusReason, this.code, this.message, {
        cause: this,
        ...(this.status.details === undefined ? {} : { details: this.status.details }),
      });
    return badGateway('kube-apiserver answered with an error', { cause: this });
  }

  /** The response when a request of this server itself failed. A 403 is no fault of the caller: kube-apiserver refuses all while it starts. */
  toOwnStatusError(): StatusError {
    return this.code === 403
      ? serviceUnavailable("kube-apiserver refuses this server's requests now", 1, this)
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
