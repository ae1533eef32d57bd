/** How pages describe themselves: people are shown them, and programs need not know what is in them. */
import type { ResponseDescriptions, BodyDescription, ParameterDescription } from '../../http/description.ts';
import { described, text, type Schema } from '../../http/schema.ts';
import { formBody } from '../form.ts';
import { formTokenField } from './form-token.ts';

export const pageAnswers: ResponseDescriptions = {
  200: { description: 'A page', content: { 'text/html': text } },
  303: { description: 'Go on there', headers: { Location: 'Where, also to the client that sent the user here' } },
};

/** What a form of ours sends. */
export const ownFormBody = (fields: Readonly<Record<string, string>>): BodyDescription =>
  formBody({ [formTokenField]: described('As the page has it: made for this browser', text) }, textsOf(fields));

const textsOf = (fields: Readonly<Record<string, string>>): Readonly<Record<string, Schema>> =>
  Object.fromEntries(Object.entries(fields).map(([name, description]) => [name, described(description, text)]));

const fieldsOf = (parameters: readonly ParameterDescription[]): Readonly<Record<string, Schema>> =>
  Object.fromEntries(parameters.map(({ name, description, schema }) => [name, described(description, schema)]));

/** The same in a form as in a URL. */
export const bodyOf = (parameters: readonly ParameterDescription[]): BodyDescription =>
  formBody(
    fieldsOf(parameters.filter(({ required }) => required === true)),
    fieldsOf(parameters.filter(({ required }) => required !== true)),
  );
