import { expect, test } from '@jest/globals';
import { createPlatform, namespace } from '../../../fakes/platform.ts';
import { settle } from '../../kube/fakes.ts';

test('an empty Secret is the secret of no client', async () => {
  const platform = await createPlatform();
  platform.configure({ clients: [{ name: 'web', secretRef: { name: 'web', key: 'secret' } }] });
  platform.cluster.put(`/api/v1/namespaces/${namespace}/secrets`, {
    metadata: { name: 'web' },
    type: 'Opaque',
    data: { secret: Buffer.from('\n').toString('base64') },
  });
  await settle();
  expect(await platform.directory.clients.authenticate('web', [''], '192.0.2.1')).toBeUndefined();
  platform.stop();
});
