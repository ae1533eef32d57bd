/** User info in a URL would be published or ignored without notice. */
export const hasUserInfo = ({ username, password }: URL): boolean => username !== '' || password !== '';

export const isHTTPSURL = (text: string): boolean => {
  const url = URL.parse(text);
  return url?.protocol === 'https:' && !hasUserInfo(url);
};

/** Text of error messages. They do not quote the URL, because it may contain a password. */
export const httpsURLExpected = 'must be an https URL without username and password';
