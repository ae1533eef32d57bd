import { loggingGroup, loggingVersion, tenantGroup } from '../config/names.ts';
import type { ApiGroupVersion } from '../apimachinery/api-groups.ts';

export const group = loggingGroup;
export const version = loggingVersion;
export const kind = 'LogQuery';

const resources = [{ name: 'logs', singularName: 'log', namespaced: false, kind, verbs: ['get'] }];

const logsOf = (name: string): ApiGroupVersion => ({ group: name, version, resources });

/** Version served to the aggregation layer of kube-apiserver. */
export const loggingGroupVersion: ApiGroupVersion = logsOf(group);
/** Versions served by the gateway below /kapis. */
export const loggingGroups: readonly ApiGroupVersion[] = [loggingGroupVersion, logsOf(tenantGroup)];
