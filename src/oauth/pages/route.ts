import type { Request, Response } from 'express';
import { isTold, OAuthError } from '../../runtime/errors.ts';
import { anonymous } from '../../http/access.ts';
import type {
  Handler,
  RequestContext,
  Route,
  ResponseDescriptions,
  BodyDescription,
  ParameterDescription,
} from '../../http/route.ts';
import { isSecure } from '../../http/listeners/face.ts';
import { readForm, formBody } from '../form.ts';
import { withParameters } from '../authorization-request.ts';
import { failurePage } from './notices.ts';
import { demandFormToken, formTokenField } from './cookies.ts';
import { described, text, type Schema } from '../../http/schema.ts';

/** How pages describe themselves: people are shown them, and programs need not know what is in them. */
const pageAnswers: ResponseDescriptions = {
  200: { description: 'A page', content: { 'text/html': text } },
  303: { description: 'Go on there', headers: { Location: 'Where, also to the client that sent the user here' } },
};

/** What a form of ours sends. */
const ownFormBody = (fields: Readonly<Record<string, string>>): BodyDescription =>
  formBody({ [formTokenField]: described('As the page has it: made for this browser', text) }, textsOf(fields));

const textsOf = (fields: Readonly<Record<string, string>>): Readonly<Record<string, Schema>> =>
  Object.fromEntries(Object.entries(fields).map(([name, description]) => [name, described(description, text)]));

const fieldsOf = (parameters: readonly ParameterDescription[]): Readonly<Record<string, Schema>> =>
  Object.fromEntries(parameters.map(({ name, description, schema }) => [name, described(description, schema)]));

/** The same in a form as in a URL. */
const bodyOf = (parameters: readonly ParameterDescription[]): BodyDescription =>
  formBody(
    fieldsOf(parameters.filter(({ required }) => required === true)),
    fieldsOf(parameters.filter(({ required }) => required !== true)),
  );

export interface PageRequest {
  readonly req: Request;
  readonly res: Response;
  readonly context: RequestContext;
  /** Of a form that was sent; of none, empty. */
  readonly form: ReadonlyMap<string, string>;
}

/** Where a page is shown. */
export type PageExchange = Pick<PageRequest, 'req' | 'res'>;

type PageRoute = Pick<Route, 'path' | 'summary' | 'parameters'>;

interface FormRoute extends PageRoute {
  /** What it takes beside the token of the form, by name, each with what it is. */
  readonly fields: Readonly<Record<string, string>>;
}

/** A page, to read: over TLS alone, and what goes wrong is told to people. */
export const pageRoute = (route: PageRoute, handle: (request: PageRequest) => Promise<void>): Route => ({
  ...route,
  method: 'get',
  access: anonymous,
  answers: pageAnswers,
  handler: forPeople(async (req, res, context) => handle({ req, res, context, form: new Map() })),
});

/** What a form of ours is sent to: 1 read it, 2 see that this browser was shown it. */
export const formRoute = ({ fields, ...route }: FormRoute, handle: (request: PageRequest) => Promise<void>): Route => ({
  ...route,
  method: 'post',
  access: anonymous,
  body: ownFormBody(fields),
  answers: pageAnswers,
  handler: forPeople(async (req, res, context) => {
    const form = await readForm(req, context.arrival);
    demandFormToken(req, form);
    await handle({ req, res, context, form });
  }),
});

/** What a client asks for at a page by a form of its own, in the browser of somebody: the same as if it stood in the URL. */
export const postedRoute = ({ parameters = [], ...route }: PageRoute): Route => ({
  ...route,
  method: 'post',
  access: anonymous,
  body: bodyOf(parameters),
  answers: pageAnswers,
  handler: forPeople(async (req, res, { arrival }) =>
    seeOther(res, withParameters(route.path, Object.fromEntries(await readForm(req, arrival)))),
  ),
});

const forPeople =
  (handle: (...request: Parameters<Handler>) => Promise<void>): Handler =>
  async (req, res, context) => {
    if (!isSecure(req))
      throw new OAuthError('invalid_request', 'this page is served over https alone', { status: 404 });
    try {
      await handle(req, res, context);
    } catch (error) {
      if (!isTold(error) || res.headersSent) throw error;
      failurePage({ res, context }, error);
    }
  };

/** 303: the browser goes there with GET, whatever it came with. */
export function seeOther(res: Response, location: string): void {
  res.statusCode = 303;
  res.setHeader('Location', location);
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Content-Length', '0');
  res.end();
}
