/** Account service, served at /kapis/iam.platform.io. */
import { iamGroup, iamVersion } from '../config/names.ts';
import type { Route } from '../http/route.ts';
import type { ApiGroupVersion } from '../apimachinery/api-groups.ts';
import { loginRecordsRoute, type LoginRecordsParts } from './login-records.ts';
import { sessionsRoutes, type SessionsParts } from './sessions.ts';
import { unlockRoute } from './unlock.ts';
import { passwordRoute, type PasswordParts } from './password.ts';
import { usersRoutes, type UsersParts } from './users.ts';
import { whoAmIRoute } from './whoami.ts';

export const iamGroupVersion: ApiGroupVersion = {
  group: iamGroup,
  version: iamVersion,
  resources: [
    {
      name: 'users',
      singularName: 'user',
      namespaced: false,
      kind: 'User',
      verbs: ['create', 'delete', 'get', 'list', 'patch', 'update'],
    },
    { name: 'users/loginrecords', singularName: '', namespaced: false, kind: 'LoginRecord', verbs: ['get'] },
    { name: 'users/password', singularName: '', namespaced: false, kind: 'User', verbs: ['update'] },
    { name: 'users/sessions', singularName: '', namespaced: false, kind: 'Session', verbs: ['delete', 'get'] },
    { name: 'users/unlock', singularName: '', namespaced: false, kind: 'User', verbs: ['create'] },
    { name: 'whoami', singularName: 'whoami', namespaced: false, kind: 'WhoAmI', verbs: ['list'] },
  ],
};

export const iamRoutes = (parts: UsersParts & PasswordParts & SessionsParts & LoginRecordsParts): Route[] => [
  ...usersRoutes(parts),
  passwordRoute(parts),
  ...sessionsRoutes(parts),
  loginRecordsRoute(parts),
  unlockRoute(parts),
  whoAmIRoute(parts.directory),
];
