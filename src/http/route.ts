import type { Request, Response } from 'express';
import type { AuditRecord } from '../audit/record.ts';
import type { UserInfo } from '../auth/user.ts';
import { noSuchPath, type StatusError } from '../runtime/errors.ts';
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

/** By media type. */
export type ContentDescription<S = Schema> = Readonly<Record<string, S>>;

export interface BodyDescription<S = Schema> {
  readonly description?: string;
  readonly required: boolean;
  readonly content: ContentDescription<S>;
}

export interface ResponseDescription<S = Schema> {
  readonly description: string;
  readonly content?: ContentDescription<S>;
  /** Descriptions by name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** By status. */
export type ResponseDescriptions<S = Schema> = Readonly<Record<number, ResponseDescription<S>>>;

export const inQuery = (name: string, description: string, schema: Schema = text): ParameterDescription => ({
  name,
  in: 'query',
  description,
  schema,
});

/** A segment of a path (filters/request-info.ts). Neither `.` nor `..`, in words that Go's regexp has too. */
const segment = text.regex(
  // oxlint-disable-next-line no-control-regex -- they are what it refuses
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

/** 200 with a document in JSON. */
export const json = (schema: Schema, description = 'OK'): ResponseDescriptions => ({
  200: { description, content: { 'application/json': schema } },
});

/**
 * A request, described once (k8s.io/apiserver pkg/endpoints/request/requestinfo.go): nobody parses a path again.
 * For `/kapis/resources.platform.io/v1alpha3/nodes/n1`: prefix 'kapis', group 'resources.platform.io', version 'v1alpha3',
 * resource 'nodes', name 'n1', verb 'get'.
 */
export interface RequestInfo {
  /** The path without the query, still percent-encoded. */
  readonly path: string;
  readonly isResourceRequest: boolean;
  /** 'get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'; else the method in lower case. */
  readonly verb: string;
  readonly prefix: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** A watch, or a stream to or from a pod: counted and limited apart, without a deadline (longRunningRequestCheck there). */
  readonly isLongRunning: boolean;
}

/** Counts a request apart while its body arrives. Each throws StatusError 429 when there is no slot. */
export interface Arrival {
  awaitBody(): void;
  bodyArrived(): void;
}

/** What the filters found out about a request; every handler gets it. */
export interface RequestContext {
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  readonly auditID: string;
  readonly sourceIP: string;
  /** What the client calls itself; '' if it does not. */
  readonly userAgent: string;
  readonly log: Logger;
  /** Aborted when the client goes away, when the deadline passes and when the server drains. */
  readonly signal: AbortSignal;
  /** Undefined only where `access` of the route demands no identity. */
  readonly user: UserInfo | undefined;
  /** Whom the user may impersonate and asked to be. */
  readonly impersonated: UserInfo | undefined;
  /** Frees the slot of the request before the response is read: what is left to send takes no memory. */
  freeSlots(): void;
  /** Runs `cleanup` once the answer is with the network or the client has gone away; at once if that is so already. */
  onEnd(cleanup: () => void): void;
  /** Slots of a login. */
  readonly arrival: Arrival | undefined;
  /** What is to be said of the request in the audit log. */
  readonly audit: Pick<AuditRecord, 'identify' | 'annotate'> | undefined;
  /** Calls `listener` when `user` has changed while a stream is open, such as its groups. */
  onUserChange(listener: () => void): void;
  /**
   * Guards an open stream: calls `check` every few seconds and when `user` has changed, and `refuse` with the StatusError 4xx that it
   * throws. While there is no decision the stream goes on.
   */
  onRecheck(check: () => Promise<void>, refuse: (error: StatusError) => void): void;
}

export type Handler = (req: Request, res: Response, context: RequestContext) => void | Promise<void>;

/** A route, as `defineRoute` makes it: the router and the descriptions read it. */
export interface Route {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** In Express' syntax (`/kapis/:group`). */
  readonly path: string;
  readonly summary: string;
  /** Further sentences, in Markdown. */
  readonly description?: string;
  readonly access: Access;
  /** Requested so often that it is matched before the others, whatever their order. */
  readonly hot?: boolean;
  readonly parameters?: readonly ParameterDescription[];
  readonly body?: BodyDescription;
  readonly responses?: ResponseDescriptions;
  /** Statuses of errors, beside those that follow from the rest of the route (docs/openapi/error-responses.ts). */
  readonly errors?: readonly number[];
  /** The route only says what replaced it. */
  readonly removed?: boolean;
  readonly handler: Handler;
}

/** What serves a request: a route, the gateway, or an error in the place of a route. */
export type MatchedRoute = Pick<Route, 'access' | 'handler'>;

export const noRoute = (access: Access): MatchedRoute => ({
  access,
  handler: () => {
    throw noSuchPath();
  },
});

/** Serves all paths under these prefixes, without a review: kube-apiserver authorizes the caller. */
export interface Gateway extends MatchedRoute {
  readonly prefixes: ReadonlySet<string>;
}
