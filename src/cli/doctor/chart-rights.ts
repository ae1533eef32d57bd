/** Rights of the server. hack/update-manifests.ts generates chart-rights.json from the chart. */
import generated from './chart-rights.json' with { type: 'json' };

/** rbac/v1 PolicyRule for resources. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export interface ChartRole {
  readonly kind: string;
  readonly name: string;
  readonly rules: readonly PolicyRule[];
}

/** Roles that the chart creates for the server with default values. */
export const chartRights: readonly ChartRole[] = generated;
