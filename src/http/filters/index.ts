export { accessLog } from './access-log.ts';
export { auditID } from './audit-id.ts';
export { authentication } from './authentication.ts';
export { authorization } from './authorization.ts';
export { deadline } from './deadline.ts';
export { inFlight, perUser } from './in-flight.ts';
export { requestInfo } from './request-info.ts';
export { securityHeaders } from './security-headers.ts';
export { sourceIP } from './source-ip.ts';
