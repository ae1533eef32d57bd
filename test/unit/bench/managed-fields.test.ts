import { expect, test } from '@jest/globals';
import { managedFields } from '../../bench/managed-fields.ts';

test('fieldsV1() returns the format that kube-apiserver writes', () => {
  const written = { manager: 'kubectl-create', time: '2026-01-01T00:00:00Z' };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
    spec: {
      nodeName: 'node-1',
      securityContext: {},
      tolerations: [{ key: 'a' }],
      containers: [{ name: 'app', image: 'x', ports: [{ containerPort: 80, name: 'http', protocol: 'TCP' }] }],
    },
  };
  // Copied from the response of kube-apiserver v1.36.3 to `kubectl create`.
  expect(managedFields(pod, written)).toEqual({
    manager: 'kubectl-create',
    operation: 'Update',
    apiVersion: 'v1',
    time: '2026-01-01T00:00:00Z',
    fieldsType: 'FieldsV1',
    fieldsV1: {
      'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
      'f:spec': {
        'f:nodeName': {},
        'f:securityContext': {},
        'f:containers': {
          'k:{"name":"app"}': {
            '.': {},
            'f:name': {},
            'f:image': {},
            'f:ports': {
              '.': {},
              'k:{"containerPort":80,"protocol":"TCP"}': {
                '.': {},
                'f:containerPort': {},
                'f:name': {},
                'f:protocol': {},
              },
            },
          },
        },
        'f:tolerations': {},
      },
    },
  });
});

test('the status of an object has its own entry in managedFields', () => {
  const entry = managedFields(
    { status: { phase: 'Running' } },
    { manager: 'kubelet', time: 't', subresource: 'status' },
  );
  expect(entry).toMatchObject({ subresource: 'status', fieldsV1: { 'f:status': { 'f:phase': {} } } });
});
