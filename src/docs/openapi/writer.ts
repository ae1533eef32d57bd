/** Writes the operations of a document in either format, and collects the components that they share. */
import type { ResponseDescription, ContentDescription } from '../../http/route.ts';
import type { Components } from './components.ts';
import type { Example } from './examples.ts';
import type { JSONSchema } from './json-schema.ts';
import { byPath, sorted, type OperationDescription } from './operation.ts';

export abstract class Writer {
  protected readonly schemas: Components;
  readonly #responsesPrefix: string;
  readonly #responses = new Map<string, object>();

  /** `responsesPrefix`: prefix of references to responses, such as `#/responses/`. */
  constructor(schemas: Components, responsesPrefix: string) {
    this.schemas = schemas;
    this.#responsesPrefix = responsesPrefix;
  }

  get components(): { readonly responses: object; readonly schemas: Readonly<Record<string, unknown>> } {
    return { responses: sorted(this.#responses), schemas: this.schemas.schemas };
  }

  paths(operations: readonly OperationDescription[]): object {
    return byPath(operations, (operation) => this.#operation(operation));
  }

  /** Writes parameters, body and media types of the request. */
  protected abstract request(operation: OperationDescription): object;
  /** Writes a response header, whose value is a string. */
  protected abstract header(description: string): object;
  protected abstract content(
    content: ContentDescription<JSONSchema> | undefined,
    example?: Example['response'],
  ): object;

  #operation(operation: OperationDescription): object {
    const { operationId, tag, summary, description, deprecated, security, responses, errors, example } = operation;
    const written = (status: string, response: ResponseDescription<JSONSchema>): object =>
      this.#response(response, String(example?.response.status) === status ? example?.response : undefined);
    const failed = [...errors].map(([status, { name, response }]) => {
      if (example?.response.status === status) return [String(status), written(String(status), response)] as const;
      if (!this.#responses.has(name)) this.#responses.set(name, this.#response(response));
      return [String(status), { $ref: `${this.#responsesPrefix}${name}` }] as const;
    });
    return {
      operationId,
      tags: [tag],
      summary,
      ...(description === undefined ? {} : { description }),
      ...(deprecated === true ? { deprecated } : {}),
      ...(security === undefined ? {} : { security }),
      ...this.request(operation),
      responses: {
        ...Object.fromEntries(Object.entries(responses).map(([status, one]) => [status, written(status, one)])),
        ...Object.fromEntries(failed),
      },
      ...operation.extensions,
    };
  }

  #response({ description, content, headers }: ResponseDescription<JSONSchema>, example?: Example['response']): object {
    return {
      description,
      ...(headers === undefined
        ? {}
        : {
            headers: Object.fromEntries(Object.entries(headers).map(([name, what]) => [name, this.header(what)])),
          }),
      ...this.content(content, example),
    };
  }
}
