/** Returns whether a URL has a username or a password, which would be published or silently ignored. */
export const hasUserInfo = ({ username, password }: URL): boolean => username !== '' || password !== '';

const isURL = (text: string, protocols: readonly string[]): boolean => {
  const url = URL.parse(text);
  return url !== null && protocols.includes(url.protocol) && !hasUserInfo(url);
};

export const isHTTPSURL = (text: string): boolean => isURL(text, ['https:']);
export const isHTTPURL = (text: string): boolean => isURL(text, ['http:', 'https:']);

/** Text for error messages, which do not quote the URL because it may contain a password. */
export const httpsURLExpected = 'must be an https URL without username and password';
