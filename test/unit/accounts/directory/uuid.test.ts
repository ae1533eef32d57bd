import { describe, expect, test } from '@jest/globals';
import { configuredUserUID, uuidV5 } from '../../../../src/accounts/directory/account.ts';

describe('a name-based UUID', () => {
  test.each([
    // RFC 9562 appendix A.4 and Python's documentation.
    ['6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com', '2ed6657d-e927-568b-95e1-2665a8aea6a2'],
    ['6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'python.org', '886313e1-3b8a-5372-9b90-0c9aee199e5d'],
    ['6ba7b811-9dad-11d1-80b4-00c04fd430c8', 'http://python.org/', '4c565f0d-3f5a-5890-b41b-20cf47701c5e'],
  ])('the name-based UUID of the namespace %s and the name %s is %s', (namespace, name, uuid) => {
    expect(uuidV5(namespace, name)).toBe(uuid);
  });

  // evidence: user-uid-per-issuer
  test('a name-based UUID of a user differs for each issuer and name', () => {
    const uids = ['https://a', 'https://b'].flatMap((issuer) =>
      ['alice', 'bob', 'Alice', ''].map((name) => configuredUserUID(issuer, name)),
    );
    expect(new Set(uids).size).toBe(8);
    for (const uid of uids)
      expect(uid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(configuredUserUID('https://a', 'alice')).toBe(uids[0]);
  });
});
