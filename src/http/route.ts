import type { ServerIdentity } from '../cluster/client/client.ts';
import type { Request, Response } from 'express';
import type { AuditRecord } from '../audit/record.ts';
import type { UserInfo } from '../auth/user.ts';
import { pathNotFound, type StatusError } from '../runtime/errors.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Access } from './access.ts';
import { text, type Schema } from './schema.ts';

/** A parameter of a route. */
export interface ParameterDescription<S = Schema> {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  readonly required?: boolean;
  readonly schema: S;
}

/** Schemas by media type. */
export type ContentDescription<S = Schema> = Readonly<Record<string, S>>;

export interface BodyDescription<S = Schema> {
  readonly description?: string;
  readonly required: boolean;
  readonly content: ContentDescription<S>;
}

export interface ResponseDescription<S = Schema> {
  readonly description: string;
  readonly content?: ContentDescription<S>;
  /** Descriptions of the response headers, by name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Responses by status. */
export type ResponseDescriptions<S = Schema> = Readonly<Record<number, ResponseDescription<S>>>;

export const inQuery = (name: string, description: string, schema: Schema = text): ParameterDescription => ({
  name,
  in: 'query',
  description,
  schema,
});

/**
 * A path segment that filters/request-info.ts accepts, which excludes `.` and `..`. The pattern uses only syntax that
 * Go's regexp supports.
 */
const segment = text.regex(
  // oxlint-disable-next-line no-control-regex -- the pattern excludes control characters
  /^(?:[^./\\\x00-\x1f\x7f-\x9f]|\.[^./\\\x00-\x1f\x7f-\x9f]|\.\.[^/\\\x00-\x1f\x7f-\x9f])[^/\\\x00-\x1f\x7f-\x9f]*$/,
);

export const inPath = (name: string, description: string): ParameterDescription => ({
  name,
  in: 'path',
  description,
  required: true,
  schema: segment,
});

export const inHeader = (name: string, description: string, schema: Schema = text): ParameterDescription => ({
  name,
  in: 'header',
  description,
  schema,
});

/** Returns the content of an object or a list. */
export const jsonOrYAML = (schema: Schema): ContentDescription => ({
  'application/json': schema,
  'application/yaml': schema,
});

/** Returns the response 200 with an object or a list. */
export const objectResponse = (schema: Schema, description: string): ResponseDescriptions => ({
  200: { description, content: jsonOrYAML(schema) },
});

/** Returns the response 200 with a JSON document. */
export const json = (schema: Schema, description = 'OK'): ResponseDescriptions => ({
  200: { description, content: { 'application/json': schema } },
});

/**
 * Parsed URL of a request (k8s.io/apiserver pkg/endpoints/request/requestinfo.go). No other code parses the path. For
 * `/kapis/resources.platform.io/v1alpha3/nodes/n1`: prefix 'kapis', group 'resources.platform.io', version 'v1alpha3',
 * resource 'nodes', name 'n1', verb 'get'.
 */
export interface RequestInfo {
  /** The path without the query, still percent-encoded. */
  readonly path: string;
  readonly isResourceRequest: boolean;
  /**
   * Verb: 'get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'; else the method in lower
   * case.
   */
  readonly verb: string;
  readonly prefix: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /**
   * True for a watch, a log stream, or a stream to or from a pod. Such requests have their own limits and no deadline
   * (longRunningRequestCheck of k8s.io/apiserver).
   */
  readonly isLongRunning: boolean;
}

/**
 * Moves a request to separate slots while its body arrives, and moves it back afterwards. Both methods throw
 * StatusError 429 if no slot is free.
 */
export interface Arrival {
  awaitBody(): void;
  bodyArrived(): void;
}

/** Results of the filters, passed to every handler. */
export interface RequestContext {
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  readonly auditID: string;
  readonly sourceIP: string;
  /** The header User-Agent; '' if there is none. */
  readonly userAgent: string;
  readonly log: Logger;
  /** Signal that is aborted when the client disconnects, when the deadline passes and when the server drains. */
  readonly signal: AbortSignal;
  /** Caller, undefined only if `access` of the route requires no authentication. */
  readonly user: UserInfo | undefined;
  /** The impersonated user. The caller is allowed to impersonate this user. */
  readonly impersonated: UserInfo | undefined;
  /**
   * Frees the slots of the request before the client has read the response. Call it only if the rest of the response
   * takes no memory.
   */
  freeSlots(): void;
  /**
   * Runs `cleanup` when the response is handed to the network or the client has disconnected; at once if that has
   * already happened.
   */
  onEnd(cleanup: () => void): void;
  /** Slots of a login; undefined for other requests. */
  readonly arrival: Arrival | undefined;
  readonly audit: Pick<AuditRecord, 'identify'> | undefined;
  /** Adds an annotation (audit/annotations.ts) to the audit event. The metrics also read the annotation. */
  annotate(key: string, value: string): void;
  /** Calls `listener` when `user` changes while a stream is open, for example its groups. */
  onUserChange(listener: () => void): void;
  /**
   * Guards an open stream: calls `check` every 10 s and when `user` changes, and `refuse` with a StatusError 4xx other
   * than 429 that `check` throws. The stream continues if the check fails for another reason.
   */
  onRecheck(check: () => Promise<void>, refuse: (error: StatusError) => void): void;
}

export type Handler = (req: Request, res: Response, context: RequestContext) => void | Promise<void>;

/** A route as `defineRoute` returns it, for the router and the API descriptions. */
export interface Route {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Path in Express' syntax (`/kapis/:group`). */
  readonly path: string;
  readonly summary: string;
  /** Markdown. */
  readonly description?: string;
  readonly access: Access;
  readonly parameters?: readonly ParameterDescription[];
  readonly body?: BodyDescription;
  readonly responses?: ResponseDescriptions;
  /** Returns the path of kube-apiserver that accepts the method of a request; undefined if there is none. */
  readonly writtenAt?: (context: RequestContext) => string | undefined | Promise<string | undefined>;
  /** Error statuses in addition to those that docs/openapi/error-responses.ts derives from the route. */
  readonly errors?: readonly number[];
  /** True if the route was removed and only names its replacement. */
  readonly removed?: boolean;
  /**
   * True for a page that people open in a browser. Browsers that open the page over plain HTTP are redirected to HTTPS.
   */
  readonly isPage?: boolean;
  /** True if the page returns 404 over plain HTTP. */
  readonly isTLSOnly?: boolean;
  /** True for the token endpoint, whose results are counted in the metrics. */
  readonly issuesTokens?: boolean;
  readonly handler: Handler;
}

/** Serves a request: a route, the gateway, or a handler that throws because there is no route. */
export type MatchedRoute = Pick<Route, 'access' | 'handler' | 'isPage' | 'isTLSOnly' | 'issuesTokens'> &
  Partial<Pick<Route, 'path'>>;

/**
 * Returns a substitute for paths that no route serves. The handler of the substitute throws 404. `hintFor` describes
 * the nearest path.
 */
export const noRoute = (access: Access, hintFor?: (path: string) => string): MatchedRoute => ({
  access,
  handler: (_req, _res, { info }) => {
    throw pathNotFound(hintFor?.(info.path));
  },
});

/** Serves all paths below these prefixes. This server does not authorize the caller, because kube-apiserver does. */
export interface Gateway extends MatchedRoute {
  readonly prefixes: ReadonlySet<string>;
  /**
   * Returns the identity with which requests are forwarded. Nobody is allowed to impersonate this identity. Throws
   * KubeError.
   */
  readonly ownIdentity: () => Promise<ServerIdentity>;
}
