/** What kubelets and balancers ask all the time: always answered, and logged only when it fails. */
export const probes: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);
