/** User info in a URL would be published or ignored without notice. */
export const hasUserInfo = ({ username, password }: URL): boolean => username !== '' || password !== '';

export const isHTTPSURL = (text: string): boolean => {
  const url = URL.parse(text);
  return url?.protocol === 'https:' && !hasUserInfo(url);
};

/** What messages about such a URL say. They do not quote it: it may hold a password. */
export const httpsURLExpected = 'must be an https URL without username and password';
