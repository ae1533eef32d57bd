import { expect, test } from '@jest/globals';
import { read, type ShownOperation } from '../../../../../src/docs/explorer/browser/openapi.ts';

const operation = (described: object, components: object = {}): ShownOperation =>
  read({ paths: { '/x': { post: { operationId: 'it', ...described } } }, components }).operations[0] as ShownOperation;

const media = (content: object): ShownOperation =>
  operation(
    { requestBody: { content: { 'application/json': content } } },
    { examples: { shared: { summary: 'A shared one', value: [1] } } },
  );

test.each([
  ['an example', { example: { a: 1 } }, [{ title: '', value: { a: 1 } }]],
  ['a false example', { example: false }, [{ title: '', value: false }]],
  ['a single named example', { examples: { only: { value: 'x' } } }, [{ title: '', value: 'x' }]],
  [
    'several examples, titled by summary or name',
    { examples: { first: { summary: 'The first', value: 1 }, second: { value: null } } },
    [
      { title: 'The first', value: 1 },
      { title: 'second', value: null },
    ],
  ],
  ['a reference', { examples: { one: { $ref: '#/components/examples/shared' } } }, [{ title: '', value: [1] }]],
  ['an external example', { examples: { far: { externalValue: 'https://evil.example/' } } }, []],
  ['invalid examples', { examples: 7 }, []],
  ['no example', {}, []],
])('the reader of the OpenAPI document returns the inline examples of a media type with %s', (_, content, examples) => {
  expect(media(content).body?.content[0]?.examples).toEqual(examples);
});

test('the reader of the OpenAPI document returns the examples of parameters and responses', () => {
  const { parameters, responses } = operation({
    parameters: [{ name: 'name', in: 'query', example: 'n1' }],
    responses: { 200: { description: 'OK', content: { 'text/plain': { example: 'a line' } } } },
  });
  expect(parameters[0]?.examples).toEqual([{ title: '', value: 'n1' }]);
  expect(responses[0]?.content[0]?.examples).toEqual([{ title: '', value: 'a line' }]);
});
