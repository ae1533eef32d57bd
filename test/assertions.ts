/** A test that ends without an assertion fails: a loop over nothing proves nothing. */
import { beforeEach, expect } from '@jest/globals';

beforeEach(() => expect.hasAssertions());
