// Every flow of OAuth 2.0 and OpenID Connect that the server supports, written with golang.org/x/oauth2 and go-oidc in
// the usual way. `oauth ISSUER` reads the login from standard input, and prints its results as one JSON object with the
// same form as from ../../python/oauth_flows.py. SSL_CERT_FILE names the trusted CA.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// input is the content of standard input.
type input struct {
	Username string            `json:"username"`
	Password string            `json:"password"`
	Callback string            `json:"callback"`
	Clients  map[string]string `json:"clients"`
}

// endpoints lists the endpoints that neither library uses.
type endpoints struct {
	Revocation    string `json:"revocation_endpoint"`
	Introspection string `json:"introspection_endpoint"`
}

type flows struct {
	input
	endpoints
	ctx      context.Context
	issuer   string
	provider *oidc.Provider
}

type seen map[string]any

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: oauth ISSUER < WHO")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(issuer string) (err error) {
	f := &flows{ctx: context.Background(), issuer: issuer}
	if err := json.NewDecoder(os.Stdin).Decode(&f.input); err != nil {
		return err
	}
	if f.provider, err = oidc.NewProvider(f.ctx, issuer); err != nil {
		return err
	}
	if err := f.provider.Claims(&f.endpoints); err != nil {
		return err
	}
	found := seen{"issuer": issuer}
	for name, flow := range map[string]func() (any, error){
		"authorization code": f.code,
		"password":           f.password,
		"wrong password":     f.wrongPassword,
		"client credentials": f.clientCredentials,
	} {
		if found[name], err = flow(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func (f *flows) client(name string) *oauth2.Config {
	return &oauth2.Config{
		ClientID:     name,
		ClientSecret: f.Clients[name],
		Endpoint:     f.provider.Endpoint(),
		RedirectURL:  f.Callback,
		Scopes:       []string{oidc.ScopeOpenID, "profile"},
	}
}

// identity returns the claims of an id_token validated by go-oidc.
func (f *flows) identity(token *oauth2.Token, client string) (*oidc.IDToken, string, error) {
	raw, _ := token.Extra("id_token").(string)
	verified, err := f.provider.Verifier(&oidc.Config{ClientID: client}).Verify(f.ctx, raw)
	if err != nil {
		return nil, "", err
	}
	username, err := usernameIn(verified)
	return verified, username, err
}

func usernameIn(token interface{ Claims(any) error }) (string, error) {
	var claims struct {
		Username string `json:"preferred_username"`
	}
	err := token.Claims(&claims)
	return claims.Username, err
}

func (f *flows) code() (any, error) {
	client := f.client("console")
	verifier, state, nonce := oauth2.GenerateVerifier(), rand.Text(), rand.Text()
	callback, err := f.logIn(client.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)))
	if err != nil {
		return nil, err
	}
	result := callback.Query()
	if result.Get("state") != state || result.Get("iss") != f.issuer {
		return nil, fmt.Errorf("not a response to the request: %s", callback)
	}
	token, err := client.Exchange(f.ctx, result.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, err
	}
	verified, username, err := f.identity(token, client.ClientID)
	if err != nil {
		return nil, err
	}
	if verified.Nonce != nonce {
		return nil, errors.New("the nonce is another")
	}
	person, err := f.userInfo(token)
	if err != nil {
		return nil, err
	}
	refreshed, err := client.TokenSource(f.ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	if err != nil {
		return nil, err
	}
	again, _, err := f.identity(refreshed, client.ClientID)
	if err != nil {
		return nil, err
	}
	introspected, err := f.introspected(client, refreshed)
	if err != nil {
		return nil, err
	}
	revoked, err := f.revoke(client, refreshed)
	if err != nil {
		return nil, err
	}
	return seen{
		"scope":        token.Extra("scope"),
		"user":         username,
		"userinfo":     person,
		"rotated":      refreshed.RefreshToken != token.RefreshToken,
		"same user":    again.Subject == verified.Subject,
		"introspected": introspected,
		"revoked":      revoked,
	}, nil
}

func (f *flows) userInfo(token *oauth2.Token) (string, error) {
	person, err := f.provider.UserInfo(f.ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return "", err
	}
	return usernameIn(person)
}

// post posts a form to an endpoint as a client.
func (f *flows) post(client *oauth2.Config, endpoint string, form url.Values, result any) error {
	request, err := http.NewRequestWithContext(f.ctx, http.MethodPost, endpoint, body(form))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", formType)
	request.SetBasicAuth(url.QueryEscape(client.ClientID), url.QueryEscape(client.ClientSecret))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", endpoint, response.Status)
	}
	if result == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(result)
}

func (f *flows) introspected(client *oauth2.Config, token *oauth2.Token) ([]any, error) {
	var result seen
	err := f.post(client, f.Introspection, url.Values{"token": {token.AccessToken}}, &result)
	return []any{result["active"], result["client_id"], result["username"]}, err
}

// revoke revokes a session, and returns how userinfo, a refresh and introspection respond to its tokens.
func (f *flows) revoke(client *oauth2.Config, token *oauth2.Token) ([]any, error) {
	if err := f.post(client, f.Revocation, url.Values{"token": {token.RefreshToken}}, nil); err != nil {
		return nil, err
	}
	_, err := client.TokenSource(f.ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	response, asked := oauth2.NewClient(f.ctx, oauth2.StaticTokenSource(token)).Get(f.provider.UserInfoEndpoint())
	if asked != nil {
		return nil, asked
	}
	defer response.Body.Close()
	introspected, asked := f.introspected(client, token)
	return []any{response.StatusCode, code(err), introspected[0]}, asked
}

func (f *flows) password() (any, error) {
	client := f.client("platform")
	token, err := client.PasswordCredentialsToken(f.ctx, f.Username, f.Password)
	if err != nil {
		return nil, err
	}
	_, username, err := f.identity(token, client.ClientID)
	if err != nil {
		return nil, err
	}
	introspected, err := f.introspected(client, token)
	return seen{"user": username, "introspected": introspected}, err
}

func (f *flows) wrongPassword() (any, error) {
	_, err := f.client("platform").PasswordCredentialsToken(f.ctx, "nobody-of-go", "wrong")
	return code(err), nil
}

func (f *flows) clientCredentials() (any, error) {
	client := f.client("robot")
	config := clientcredentials.Config{
		ClientID: client.ClientID, ClientSecret: client.ClientSecret, TokenURL: client.Endpoint.TokenURL,
	}
	token, err := config.Token(f.ctx)
	if err != nil {
		return nil, err
	}
	introspected, err := f.introspected(client, token)
	return seen{"refresh token": token.RefreshToken != "", "introspected": introspected}, err
}

// code returns the code of an OAuth error.
func code(err error) string {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		return refused.ErrorCode
	}
	return ""
}
