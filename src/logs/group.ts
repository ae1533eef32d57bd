import { loggingGroup, loggingVersion, tenantGroup } from '../config/names.ts';
import type { ApiGroupVersion } from '../apimachinery/api-groups.ts';

export const group = loggingGroup;
export const version = loggingVersion;
export const kind = 'LogQuery';

const resources = [{ name: 'logs', singularName: 'log', namespaced: false, kind, verbs: ['get'] }];

const logsOf = (of: string): ApiGroupVersion => ({ group: of, version, resources });

/** Served to the aggregator. */
export const loggingGroupVersion: ApiGroupVersion = logsOf(group);
/** Served by the gateway. */
export const loggingGroups: readonly ApiGroupVersion[] = [loggingGroupVersion, logsOf(tenantGroup)];
