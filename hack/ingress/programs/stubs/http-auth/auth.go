package auth

import "net/http"

type SecretProvider func(user, realm string) string

type BasicAuth struct {
	Realm   string
	Secrets SecretProvider
}

func (*BasicAuth) RequireAuth(w http.ResponseWriter, _ *http.Request) { forbid(w) }

func CheckSecret(password, secret string) bool { return false }

type DigestAuth struct{}

func NewDigestAuthenticator(string, SecretProvider) *DigestAuth { return &DigestAuth{} }

func (*DigestAuth) CheckAuth(*http.Request) (username string, info *string) { return "", nil }

func (*DigestAuth) RequireAuth(w http.ResponseWriter, _ *http.Request) { forbid(w) }

func (*DigestAuth) RequireAuthStale(w http.ResponseWriter, _ *http.Request) { forbid(w) }

func DigestAuthParams(string) map[string]string { return nil }

func forbid(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }
