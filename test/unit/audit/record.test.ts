import { describe, expect, test } from '@jest/globals';
import { gzipSync } from 'node:zlib';
import type { Audited } from '../../../src/audit/event.ts';
import { AuditBody, BodyBudget, maxShown } from '../../../src/audit/bodies.ts';
import type { AuditRecord } from '../../../src/audit/record.ts';
import { requestInfo } from '../../../src/http/filters/request-info.ts';
import { shownURL } from '../../../src/runtime/redaction.ts';
import type { AuditEvent } from '../../fakes/audit-event.ts';
import { auditor } from '../../fakes/auditor.ts';

const json = { type: 'application/json', encoding: '' };
const responded = { failure: undefined, isWhole: true };

interface Recorded {
  readonly events: AuditEvent[];
  readonly record: AuditRecord;
}

function begin(policy: object, method: string, url: string, more: Partial<Audited> = {}): Recorded {
  const events: AuditEvent[] = [];
  const [path = '', search = ''] = url.split('?');
  const info = requestInfo(method, path, new URLSearchParams(search));
  const user = { username: 'alice', groups: ['readers'] };
  const request = {
    auditID: 'an-id',
    shownURL: shownURL(url),
    info,
    sourceIP: '192.0.2.1',
    userAgent: 'curl/8',
    user,
    ...more,
  };
  const record = auditor(policy, (event) => events.push(event)).begin(request, 1_000.25);
  return { events, record };
}

const everything = { rules: [{ level: 'RequestResponse' }] };
const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe('an audit event', () => {
  test('an audit event contains the names of users unchanged, even if a name looks like a secret', () => {
    const user = {
      username: 'Bearer root',
      uid: 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl',
      groups: ['Basic YWRtaW4='],
      extra: { password: ['of nobody'] },
    };
    const { events, record } = begin(everything, 'GET', '/api', { user, impersonated: user });
    record.complete({ time: 2_000, status: 200, ...responded });
    expect(events).toMatchObject([{ user, impersonatedUser: user }]);
  });

  test('an audit event records the user, the request, its time and its result', () => {
    const { events, record } = begin(
      { rules: [{ level: 'Metadata' }] },
      'GET',
      '/api/v1/namespaces/default/pods/p/log?follow=true',
    );
    record.received(1_001);
    record.complete({ time: 2_000, status: 200, ...responded });
    const common = {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: 'an-id',
      requestURI: '/api/v1/namespaces/default/pods/p/log?follow=true',
      verb: 'get',
      user: { username: 'alice', groups: ['readers'] },
      sourceIPs: ['192.0.2.1'],
      userAgent: 'curl/8',
      objectRef: { resource: 'pods', namespace: 'default', name: 'p', apiVersion: 'v1', subresource: 'log' },
      requestReceivedTimestamp: '1970-01-01T00:00:01.000250Z',
    };
    expect(events).toEqual([
      { ...common, stage: 'RequestReceived', stageTimestamp: '1970-01-01T00:00:01.001000Z' },
      {
        ...common,
        stage: 'ResponseComplete',
        responseStatus: { metadata: {}, code: 200 },
        stageTimestamp: '1970-01-01T00:00:02.000000Z',
      },
    ]);
  });

  test('an audit event has no objectRef for a request without a resource, and the username system:anonymous for an anonymous request', () => {
    const { events, record } = begin(everything, 'GET', '/metrics', { user: undefined, userAgent: '' });
    record.complete({
      time: 2_000,
      status: 401,
      ...responded,
      failure: { status: 'Failure', reason: 'Unauthorized', message: 'no' },
    });
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      user: { username: 'system:anonymous', groups: ['system:unauthenticated'] },
      responseStatus: { metadata: {}, status: 'Failure', reason: 'Unauthorized', message: 'no', code: 401 },
    });
    expect(events[0]).not.toHaveProperty('objectRef');
    expect(events[0]).not.toHaveProperty('userAgent');
  });

  test.each([
    ['/x?access_token=abc&b=2', '/x?access_token=redacted&b=2'],
    ['/x?client_secret=abc', '/x?client_secret=redacted'],
    ['/x?%70assword=abc', '/x?%70assword=redacted'],
    ['/oauth/callback/p?code=abc&state=s', '/oauth/callback/p?code=redacted&state=s'],
    ['/x?a=%zz', '/x?a=%zz'],
    ['/x?jwt=eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2ln', '/x?jwt=[redacted]'],
  ])('an audit event redacts secrets in the URL %s', (url, shown) => {
    const { events, record } = begin(everything, 'GET', url);
    record.complete({ time: 0, status: 200, ...responded });
    expect(events[0]?.requestURI).toBe(shown);
  });

  test('an audit event records the user, the client and the outcome of a login', () => {
    const { events, record } = begin(everything, 'POST', '/oauth/token', { user: undefined });
    record.identify({ username: 'bob', uid: 'u', groups: [] });
    record.annotate('oauth.platform.io/client', 'platform');
    record.complete({ time: 0, status: 200, ...responded });
    expect(events[0]).toMatchObject({
      user: { username: 'bob', uid: 'u' },
      annotations: { 'oauth.platform.io/client': 'platform' },
    });
  });

  test('an audit event records that the response was truncated', () => {
    const { events, record } = begin(everything, 'GET', '/x');
    record.complete({ time: 0, status: 200, ...responded, isWhole: false });
    expect(events[0]?.annotations).toEqual({ 'platform.io/aborted': 'true' });
  });

  test('no audit event is written for an omitted stage or at the level None', () => {
    const started = begin({ rules: [{ level: 'Metadata', omitStages: ['ResponseStarted'] }] }, 'GET', '/x');
    started.record.started(0, 200);
    expect(started.events).toEqual([]);
    const none = begin({ rules: [{ level: 'None' }] }, 'GET', '/x');
    none.record.received(0);
    none.record.complete({ time: 0, status: 200, ...responded });
    expect(none.events).toEqual([]);
  });
});

function bodyOf(content: string | Uint8Array): AuditBody {
  const body = new AuditBody(new BodyBudget());
  body.add(Buffer.from(content));
  return body;
}

/** Encodes a length-delimited protobuf field. */
const field = (number: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.from([(number << 3) | 2, content.length]), content]);

describe('the name of a created object', () => {
  const protobuf = 'application/vnd.kubernetes.protobuf';
  const yaml = 'application/yaml';
  const envelope = (kind: string, object: Buffer): Buffer =>
    Buffer.concat([Buffer.from('k8s\0'), field(1, field(2, Buffer.from(kind))), field(2, object)]);

  test.each<[string, string, string | Buffer, string | undefined]>([
    ['JSON', 'application/json', '{"kind":"Secret","metadata":{"name":"s"}}', 's'],
    ['a Status', 'application/json', '{"kind":"Status","details":{"name":"s"}}', 's'],
    ['YAML', yaml, 'kind: Secret\nmetadata:\n  labels:\n    name: x\n  name: s\ntype: Opaque\n', 's'],
    [
      'YAML with quotes',
      yaml,
      'metadata:\n  annotations:\n    a: |\n      kind: Status\n  name: "1"\ndetails:\n  name: x\n',
      '1',
    ],
    ['a Status in YAML', yaml, 'kind: Status\nmetadata: {}\ndetails:\n  name: s\n', 's'],
    ['YAML without a name', yaml, 'metadata: {}\nspec:\n  name: x\n', undefined],
    ['protobuf', protobuf, envelope('Secret', field(1, field(1, Buffer.from('s')))), 's'],
    ['a Status in protobuf', protobuf, envelope('Status', field(5, field(1, Buffer.from('s')))), 's'],
    ['a truncated message', protobuf, Buffer.from('k8s\0\n\u00ff'), undefined],
    ['invalid JSON', 'application/json', '{', undefined],
  ])(
    'the name of a created object is read from the response body at every audit level, if the body contains the name: %s',
    (_, type, response, name) => {
      const secrets = '/api/v1/namespaces/default/secrets';
      for (const level of ['Metadata', 'RequestResponse']) {
        const { events, record } = begin({ rules: [{ level }] }, 'POST', secrets);
        record.responseBody?.add(Buffer.from(response));
        record.describeResponse({ type, encoding: '' });
        record.complete({ time: 0, status: 201, ...responded });
        expect(events[0]?.objectRef?.['name']).toBe(name);
        expect(events[0]).not.toHaveProperty('responseObject');
      }
    },
  );
});

describe('recorded bodies', () => {
  const pods = '/api/v1/namespaces/default/pods';
  const pod = { kind: 'Pod', metadata: { name: 'p', managedFields: [{}] } };
  const bare = { kind: 'Pod', metadata: { name: 'p' } };

  function passed(policy: object, url = pods, type = 'application/json'): AuditEvent | undefined {
    const { events, record } = begin(policy, 'POST', url);
    record.describeRequest({ type, encoding: '' });
    const sent = bytes(pod);
    const body = new AuditBody(new BodyBudget());
    body.add(sent.subarray(0, 10));
    record.showRequest(body);
    body.add(sent.subarray(10));
    record.responseBody?.add(gzipSync(bytes({ kind: 'PodList', items: [pod] })));
    record.describeResponse({ ...json, encoding: 'gzip' });
    record.complete({ time: 0, status: 201, ...responded });
    return events[0];
  }

  test('recorded bodies depend on the audit level', () => {
    expect(passed(everything)).toMatchObject({ requestObject: pod, responseObject: { items: [pod] } });
    const request = passed({ rules: [{ level: 'Request' }] });
    expect(request).toMatchObject({ level: 'Request', requestObject: pod });
    expect(request).not.toHaveProperty('responseObject');
    expect(passed({ rules: [{ level: 'Metadata' }] })).not.toHaveProperty('requestObject');
  });

  test('recorded bodies omit managedFields if the policy requires it', () => {
    const event = passed({ rules: [{ level: 'RequestResponse' }], omitManagedFields: true });
    expect([event?.requestObject, event?.responseObject]).toEqual([bare, { kind: 'PodList', items: [bare] }]);
  });

  test.each(['application/merge-patch+json', 'application/strategic-merge-patch+json; charset=utf-8'])(
    'a request body of the type %s is recorded',
    (type) => expect(passed(everything, pods, type)?.requestObject).toEqual(pod),
  );

  test.each(['', 'Application/JSON'])('a request body of the type %j is recorded as JSON', (type) => {
    expect(passed(everything, pods, type)?.requestObject).toEqual(pod);
  });

  test.each(['application/vnd.kubernetes.protobuf', 'application/apply-patch+yaml'])(
    'a request body of the type %j is not recorded',
    (type) => {
      const event = passed(everything, pods, type);
      expect(event).not.toHaveProperty('requestObject');
      expect(event?.annotations).toEqual({ 'platform.io/request-not-shown': `content type is ${type}, not JSON` });
    },
  );

  test.each([
    ['a Secret', { kind: 'Secret', data: { a: 'aGlkZGVu' } }],
    ['an array that contains a Secret', [{ kind: 'Secret', data: { a: 'aGlkZGVu' } }]],
    ['a list that contains a Secret', { kind: 'List', items: [pod, { kind: 'Secret', data: { a: 'aGlkZGVu' } }] }],
  ])('a request body with %s is not recorded, whatever the URL', (_, object) => {
    const { events, record } = begin(everything, 'POST', pods);
    record.describeRequest(json);
    record.showRequest(bodyOf(JSON.stringify(object)));
    record.complete({ time: 0, status: 400, ...responded });
    expect(JSON.stringify(events)).not.toContain('aGlkZGVu');
    expect(events[0]?.annotations).toEqual({ 'platform.io/request-not-shown': 'contains data that is never logged' });
  });

  test('bodies that are nested deeper than the limit are not recorded', () => {
    const { events, record } = begin(everything, 'POST', pods);
    record.describeRequest(json);
    record.showRequest(bodyOf('['.repeat(30_000) + ']'.repeat(30_000)));
    record.complete({ time: 0, status: 400, ...responded });
    expect(events[0]?.annotations).toEqual({ 'platform.io/request-not-shown': 'cannot be decoded' });
  });

  test.each(['Bearer abc', 'bearer abc', 'a line\nBearer abc', '\teyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2ln'])(
    'recorded bodies do not contain the token of the Authorization header %j',
    (value) => {
      const { events, record } = begin(everything, 'POST', pods);
      record.describeRequest(json);
      record.showRequest(bodyOf(JSON.stringify({ value })));
      record.complete({ time: 0, status: 200, ...responded });
      expect(JSON.stringify(events[0]?.requestObject)).toMatch(/\[redacted\]/);
      expect(JSON.stringify(events)).not.toMatch(/earer abc|eyJhbGci/);
    },
  );

  test('recorded bodies share one buffer limit, and release their memory after use', () => {
    const room = new BodyBudget();
    const large = Buffer.alloc(maxShown, 'a');
    const bodies = Array.from({ length: 1_200 }, () => {
      const body = new AuditBody(room);
      body.add(large);
      return body;
    });
    const reasons = new Set(bodies.map((body) => body.show(json, false).reason));
    expect(reasons).toEqual(new Set(['cannot be decoded', 'too many bodies in memory']));
    for (const body of bodies) body.discard();
    const another = new AuditBody(room);
    another.add(large);
    expect(another.show(json, false).reason).toBe('cannot be decoded');
  });

  test('recorded bodies that arrive byte by byte are stored as one chunk', () => {
    const body = new AuditBody(new BodyBudget());
    for (const byte of bytes(pod)) body.add(Uint8Array.of(byte));
    expect(body.show(json, false)).toEqual({ text: JSON.stringify(pod) });
  });

  test.each([
    '/api/v1/namespaces/default/secrets',
    '/api/v1/namespaces/default/secrets/s/status',
    '/api/v1/namespaces/platform-system/configmaps/platform-config',
    '/api/v1/namespaces/default/serviceaccounts/default/token',
    '/apis/authentication.k8s.io/v1/tokenreviews',
    '/kapis/resources.platform.io/v1alpha3/namespaces/default/secrets',
    '/kapis/resources.platform.io/v1alpha3/secrets.v1./s',
    '/kapis/resources.platform.io/v1alpha3/sessions.iam.platform.io',
    '/kapis/iam.platform.io/v1alpha2/users/bob/password',
    '/kapis/iam.platform.io/v1alpha2/users/bob/sessions',
    '/kapis/config.platform.io/v1alpha2/kubeconfig',
    '/api/v1/namespaces/default/services/grafana/proxy/login',
    '/oauth/token',
    '/oauth/login',
  ])('bodies of requests to %s are never recorded', (url) => {
    const event = passed(everything, url);
    expect(event?.level).toBe('Metadata');
    expect(event).not.toHaveProperty('requestObject');
    expect(event).not.toHaveProperty('responseObject');
  });

  test('bodies that are too large are not recorded, and the event reports this', () => {
    const { events, record } = begin(everything, 'POST', pods);
    record.describeRequest(json);
    const body = new AuditBody(new BodyBudget());
    record.showRequest(body);
    for (let size = 0; size <= maxShown; size += 1024) body.add(Buffer.alloc(1024, 'a'));
    record.responseBody?.add(gzipSync(Buffer.from(JSON.stringify('a'.repeat(maxShown * 2)))));
    record.describeResponse({ ...json, encoding: 'gzip' });
    record.complete({ time: 0, status: 201, ...responded });
    expect(events[0]).not.toHaveProperty('requestObject');
    expect(events[0]).not.toHaveProperty('responseObject');
    expect(events[0]?.annotations).toEqual({
      'audit.k8s.io/truncated': 'true',
      'platform.io/request-not-shown': 'larger than 65536 bytes',
      'platform.io/response-not-shown': 'larger than 65536 bytes',
    });
  });

  test('bodies of invalid JSON are not recorded', () => {
    const { events, record } = begin(everything, 'POST', pods);
    record.describeRequest(json);
    const body = new AuditBody(new BodyBudget());
    body.add(Buffer.from('{"a":'));
    record.showRequest(body);
    record.complete({ time: 0, status: 400, ...responded });
    expect(events[0]).not.toHaveProperty('requestObject');
  });
});
