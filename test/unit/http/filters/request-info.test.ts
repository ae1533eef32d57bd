import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { parseQueryAsGo, requestInfo } from '../../../../src/http/filters/request-info.ts';
import type { RequestInfo } from '../../../../src/http/route.ts';

const parse = (method: string, url: string): RequestInfo => {
  const [path = '', query = ''] = url.split('?');
  return requestInfo(method, path, new URLSearchParams(query));
};

/** Returns the verb of a request and the parts of its path that are not empty. */
const short = ({ verb, prefix, group, version, namespace, resource, subresource, name }: RequestInfo): string =>
  [verb, prefix, `${group}/${version}`, namespace, resource, name, subresource].join(' ').trimEnd();

/** The cases follow TestGetAPIRequestInfo of k8s.io/apiserver. */
describe('a resource request', () => {
  test.each([
    ['GET', '/api/v1/namespaces', 'list api /v1  namespaces'],
    ['GET', '/api/v1/namespaces/other', 'get api /v1 other namespaces other'],
    ['GET', '/api/v1/namespaces/other/status', 'get api /v1 other namespaces other status'],
    ['PUT', '/api/v1/namespaces/other/finalize', 'update api /v1 other namespaces other finalize'],
    ['GET', '/api/v1/namespaces/other/pods', 'list api /v1 other pods'],
    ['GET', '/api/v1/namespaces/other/pods/foo', 'get api /v1 other pods foo'],
    ['HEAD', '/api/v1/namespaces/other/pods/foo', 'get api /v1 other pods foo'],
    ['GET', '/api/v1/namespaces/other/pods/foo/log', 'get api /v1 other pods foo log'],
    ['GET', '/api/v1/pods', 'list api /v1  pods'],
    ['HEAD', '/api/v1/pods', 'list api /v1  pods'],
    ['GET', '/api/v1/watch/pods', 'watch api /v1  pods'],
    ['POST', '/api/v1/watch/pods', 'watch api /v1  pods'],
    ['GET', '/api/v1/watch/namespaces/other/pods', 'watch api /v1 other pods'],
    ['GET', '/api/v1/pods?watch=true', 'watch api /v1  pods'],
    ['GET', '/api/v1/pods?watch=True', 'watch api /v1  pods'],
    ['GET', '/api/v1/pods?watch=1', 'watch api /v1  pods'],
    ['GET', '/api/v1/pods?watch', 'watch api /v1  pods'],
    ['GET', '/api/v1/pods?watch=false', 'list api /v1  pods'],
    ['GET', '/api/v1/pods?watch=0', 'list api /v1  pods'],
    ['POST', '/api/v1/namespaces/other/pods', 'create api /v1 other pods'],
    ['POST', '/api/v1/pods?watch=true', 'create api /v1  pods'],
    ['PUT', '/api/v1/namespaces/other/pods/foo', 'update api /v1 other pods foo'],
    ['PATCH', '/api/v1/namespaces/other/pods/foo', 'patch api /v1 other pods foo'],
    ['DELETE', '/api/v1/namespaces/other/pods/foo', 'delete api /v1 other pods foo'],
    ['DELETE', '/api/v1/namespaces/other/pods', 'deletecollection api /v1 other pods'],
    ['GET', '/apis/apps/v1/namespaces/other/deployments/d/scale', 'get apis apps/v1 other deployments d scale'],
    ['GET', '/kapis/resources.platform.io/v1alpha3/nodes', 'list kapis resources.platform.io/v1alpha3  nodes'],
    ['GET', '/kapis/resources.platform.io/v1alpha3/nodes/', 'list kapis resources.platform.io/v1alpha3  nodes'],
    ['GET', '/kapis/g/v1/nodes/n%201', 'get kapis g/v1  nodes n 1'],
    ['GET', '/kapis/g/v1/nodes?fieldSelector=metadata.name=n', 'list kapis g/v1  nodes n'],
    ['GET', '/kapis/g/v1/nodes?fieldSelector=a=b,.metadata.name==n', 'list kapis g/v1  nodes n'],
    ['GET', '/kapis/g/v1/nodes?fieldSelector=metadata.name!=n', 'list kapis g/v1  nodes'],
    ['GET', '/kapis/g/v1/nodes?fieldSelector=..metadata.name=n', 'list kapis g/v1  nodes'],
    ['GET', String.raw`/kapis/g/v1/nodes?fieldSelector=a=b\,.metadata.name=n`, 'list kapis g/v1  nodes'],
    ['GET', '/apis/g/v1/nodes?fieldSelector=.metadata.name=n', 'list apis g/v1  nodes'],
    ['GET', '/kapis/g/v1/watch', 'list kapis g/v1  watch'],
    ['GET', '/api/v1/namespaces/other/services/s/proxy', 'get api /v1 other services s proxy'],
    [
      'GET',
      '/api/v1/namespaces/other/services/https:s:web/proxy/a//b%2Fc/',
      'get api /v1 other services https:s:web proxy',
    ],
    ['POST', '/api/v1/nodes/n/proxy//', 'create api /v1  nodes n proxy'],
  ])('the resource request %s %s is parsed as %j', (method, url, expected) => {
    const info = parse(method, url);
    expect(info.isResourceRequest).toBe(true);
    expect(short(info)).toBe(expected);
  });
});

describe('a non-resource request', () => {
  test.each([
    ['GET', '/'],
    ['GET', '/api'],
    ['GET', '/api/v1'],
    ['GET', '/apis'],
    ['GET', '/apis/apps'],
    ['GET', '/apis/apps/v1'],
    ['GET', '/kapis/g/v1/'],
    ['GET', '/healthz?watch=true'],
    ['POST', '/oauth/token'],
    ['GET', '/openapi/v3/apis/g/v1'],
    ['GET', '/APIS/g/v1/pods'],
  ])('the request %s %s is recognized as a non-resource request', (method, url) => {
    expect(parse(method, url)).toMatchObject({
      isResourceRequest: false,
      verb: method.toLowerCase(),
      group: '',
      resource: '',
      name: '',
    });
  });
});

describe('an invalid or unknown path', () => {
  test.each([
    ['nowhere', 400],
    ['http://other.example/api', 400],
    ['*', 400],
    ['/%', 400],
    ['/a%zz', 400],
    ['/a%ff', 400],
    ['/a/../b', 400],
    ['/a/%2e%2e/b', 400],
    ['/./a', 400],
    ['/api/v1/pods/a%2fb', 400],
    ['/api/v1/pods/a%5cb', 400],
    ['/api/v1/pods/a%00b', 400],
    ['/api/v1/pods/a%0ab', 400],
    [`/${'x'.repeat(9_000)}`, 400],
    ['//other.example/api', 404],
    ['/api//v1/pods', 404],
    ['/api/v1/pods//', 404],
    ['/api/v1/namespaces/n/secrets/s/proxy/a//b', 404],
    ['/api/v1/namespaces/n/services/s/proxy/a/../b', 400],
    ['/api/v1/namespaces/n/services/s/proxy/a/%2E%2e/b', 400],
    ['/api/v1/namespaces/n/services/s/proxy/a%2f..%2fb', 400],
    ['/api/v1/namespaces/n/services/s/proxy/a%5cb', 400],
    ['/api/v1/namespaces/n/services/s/proxy/a%00', 400],
    ['/api/v1/namespaces/n/services/s/proxy/a\u00e9', 400],
    ['/api/v1/namespaces/n%2Fservices/services/s/proxy/a', 400],
  ])('the invalid or unknown path %s gets %d', (path, code) => {
    expect(() => parse('GET', path)).toThrow(expect.objectContaining({ code }));
  });
});

test.each([
  ['long-running', '/api/v1/pods?watch=true'],
  ['long-running', '/api/v1/watch/pods'],
  ['long-running', '/kapis/g/v1/nodes/n?watch=true'],
  ['long-running', '/api/v1/namespaces/n/pods/p/log'],
  ['long-running', '/api/v1/namespaces/n/pods/p/exec'],
  ['long-running', '/api/v1/namespaces/n/pods/p/attach'],
  ['long-running', '/api/v1/namespaces/n/pods/p/portforward'],
  ['long-running', '/api/v1/namespaces/n/services/s/proxy/a'],
  ['not long-running', '/api/v1/namespaces/n/pods/p?watch=true'],
  ['not long-running', '/api/v1/namespaces/n/pods/log'],
  ['not long-running', '/kapis/g/v1/users/u/log'],
  ['not long-running', '/version?watch=true'],
])('a request is %s: %s', (outcome, url) => {
  expect(parse('GET', url).isLongRunning).toBe(outcome === 'long-running');
});

test.each([
  ['watch=1', 'watch'],
  ['watch', 'watch'],
  ['%77atch=1', 'watch'],
  ['a=%zz&watch=1', 'watch'],
  ['a;b&watch=1', 'watch'],
  ['watch=%zz&watch=1', 'watch'],
  ['watch=0&watch=1', 'list'],
  ['watch=%zz', 'list'],
  ['watch=%', 'list'],
  ['watch=1;x', 'list'],
  ['?watch=1', 'list'],
  ['%77atch=1;', 'list'],
  ['', 'list'],
])('a request with the query %j is parsed as a %s, as by kube-apiserver', (search, verb) => {
  expect(requestInfo('GET', '/api/v1/secrets', parseQueryAsGo(search)).verb).toBe(verb);
});

test('any path is parsed or rejected, and the parts of a parsed path contain no separator', () => {
  const segment = fc.oneof(
    fc.constantFrom('api', 'apis', 'kapis', 'v1', 'watch', 'namespaces', '', '.', '..', '%2f', '%', '%2e'),
    fc.string({ maxLength: 6 }),
  );
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 9 }), fc.constantFrom('GET', 'POST', 'BREW'), (segments, method) => {
      let parts: string[] = [];
      try {
        const { namespace, resource, subresource, name, group, version } = requestInfo(
          method,
          `/${segments.join('/')}`,
          new URLSearchParams(),
        );
        parts = [namespace, resource, subresource, name, group, version];
      } catch (error) {
        parts = [(error as Error).name.replace('StatusError', '')];
      }
      expect(parts.filter((part) => /[/\\\0]|^\.\.?$|Error/.test(part))).toEqual([]);
    }),
  );
});
