import { describe, expect, test } from '@jest/globals';
import {
  parseArguments,
  parseCredentialFlags,
  parseDoctorFlags,
  parseFlags,
  UsageError,
} from '../../../src/config/flags.ts';

const defaults = {
  httpPort: 9090,
  httpsPort: 9443,
  aggregatedPort: 10250,
  bindAddress: '0.0.0.0',
  aggregatedBindAddress: '0.0.0.0',
  tlsCertFile: undefined,
  tlsPrivateKeyFile: undefined,
  kubeconfig: undefined,
  namespace: 'ns',
  serviceName: 'platform-apiserver',
  configMap: 'platform-config',
  config: undefined,
};

describe('the command line', () => {
  test('the command line has defaults for everything except the namespace', () => {
    expect(parseFlags(['--namespace=ns'], {})).toEqual(defaults);
    expect(parseFlags([], { POD_NAMESPACE: 'ns' })).toEqual(defaults);
  });

  test('the command line takes only POD_NAMESPACE from the environment, and the flag takes precedence', () => {
    const requestedNames: string[] = [];
    const environment = new Proxy<Record<string, string>>(
      { POD_NAMESPACE: 'pod' },
      {
        get: (target, name) => {
          requestedNames.push(String(name));
          return target[String(name)];
        },
      },
    );
    expect(parseFlags([], environment).namespace).toBe('pod');
    expect(parseFlags(['--namespace', 'flag'], environment).namespace).toBe('flag');
    expect([...new Set(requestedNames)]).toEqual(['POD_NAMESPACE']);
  });

  test.each([
    ['--http-port=0', { httpPort: 0 }],
    ['--http-port=off', { httpPort: undefined }],
    ['--https-port=65535', { httpsPort: 65_535 }],
    ['--aggregated-port=443', { aggregatedPort: 443 }],
    ['--bind-address=127.0.0.1', { bindAddress: '127.0.0.1' }],
    ['--aggregated-bind-address=::1', { aggregatedBindAddress: '::1' }],
    ['--tls-cert-file=c --tls-private-key-file=k', { tlsCertFile: 'c', tlsPrivateKeyFile: 'k' }],
    ['--kubeconfig=k', { kubeconfig: 'k' }],
    ['--service-name=s', { serviceName: 's' }],
    ['--config-map=c', { configMap: 'c' }],
    ['--config=f', { config: 'f' }],
  ])('the command line accepts %s', (line, expected) => {
    expect(parseFlags(['--namespace=ns', ...line.split(' ')], {})).toEqual({ ...defaults, ...expected });
  });

  test.each([
    ['--http-port=x', '--http-port: expected a port from 0 to 65535 or off, got "x"'],
    ['--https-port=off', '--https-port: expected a port from 0 to 65535, got "off"'],
    ['--http-port=', '--http-port'],
    ['--http-port', '--http-port'],
    ['--https-port=65536', '--https-port'],
    ['--https-port=99999999999', '--https-port'],
    ['--aggregated-port=-1', '--aggregated-port'],
    ['--aggregated-port=1.5', '--aggregated-port'],
    ['--aggregated-port=0x10', '--aggregated-port'],
    ['--tls-cert-file=c', '--tls-private-key-file'],
    ['--tls-private-key-file=k', '--tls-cert-file'],
    ['--config=f --config-map=c', '--config-map'],
    ['--namespace=', '--namespace'],
    ['--namespace=../../x', '--namespace'],
    ['--service-name=A_b', '--service-name'],
    ['--config-map=a/b', '--config-map'],
    [`--config-map=${'a'.repeat(254)}`, '--config-map'],
    ['--no-such-flag', '--no-such-flag'],
    ['--no-such-flag=1', '--no-such-flag'],
    ['-x', '-x'],
    ['serve', 'serve'],
  ])('the command line rejects %s with an error that names %s', (line, named) => {
    const parse = (): unknown => parseFlags(['--namespace=ns', ...line.split(' ')], {});
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(named);
  });

  test.each([
    ['--http-prt=1', 'unknown flag --http-prt; did you mean --http-port?'],
    ['--tls-cert=a', 'unknown flag --tls-cert; did you mean --tls-cert-file?'],
    ['--no-such-flag', 'unknown flag --no-such-flag'],
    ['-x', 'unknown flag -x'],
  ])(
    'the command line rejects the unknown flag %s, and suggests the closest flag if one is similar',
    (line, message) => {
      expect(() => parseFlags(['--namespace=ns', line], {})).toThrow(new UsageError(message));
    },
  );

  test('the closest match for an unknown flag can be a flag of the credential plugin', () => {
    expect(() => parseCredentialFlags(['--ca-fil=x'])).toThrow(
      new UsageError('unknown flag --ca-fil; did you mean --ca-file?'),
    );
  });

  test.each([
    [0, 'usage: a (expected 0 arguments, got 2)'],
    [1, 'usage: a (expected 1 argument, got 2)'],
  ])('two arguments are rejected by a command whose maximum number of arguments is %d', (count, message) => {
    expect(() => parseArguments(['x', 'y'], 'a', count)).toThrow(new UsageError(message));
  });

  test.each([{}, { POD_NAMESPACE: '' }, { NAMESPACE: 'x' }])(
    'the command line without a namespace is rejected with instructions to set it: %j',
    (environment) => {
      expect(() => parseFlags([], environment)).toThrow(/--namespace.*POD_NAMESPACE/);
    },
  );
});

describe('the flags of the doctor', () => {
  test('the default namespace and Service of the doctor are the defaults of the Helm chart', () => {
    expect(parseDoctorFlags([])).toEqual({
      kubeconfig: undefined,
      context: undefined,
      namespace: 'platform-system',
      service: 'platform-apiserver',
      output: 'text',
      bundle: undefined,
    });
  });

  test.each([
    ['--output=yaml', '--output: expected text or json, got "yaml"'],
    ['--namespace=A', '--namespace: expected the name of a Kubernetes object, got "A"'],
    ['--service=a/b', '--service: expected the name of a Kubernetes object, got "a/b"'],
    ['--contexts=a', 'unknown flag --contexts; did you mean --context?'],
    ['nonsense', "Unexpected argument 'nonsense'. This command does not take positional arguments"],
  ])('the doctor rejects the argument %s', (flag, message) => {
    expect(() => parseDoctorFlags([flag])).toThrow(new UsageError(message));
  });
});
