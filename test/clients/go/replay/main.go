// The login of a tool that no package registry provides, with the libraries that the tool uses. The program reads the
// settings as JSON from SETTINGS, and prints the address at which the user logs in. It receives the authorization
// response at its redirect URI on this machine, and prints the result as JSON. SSL_CERT_FILE names the trusted CA.
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/jmespath/go-jmespath"
	"golang.org/x/oauth2"
)

type settings struct {
	Issuer       string   `json:"issuer"`
	ClientID     string   `json:"clientID"`
	ClientSecret string   `json:"clientSecret"`
	RedirectURL  string   `json:"redirectURL"`
	Scopes       []string `json:"scopes"`
	PKCE         bool     `json:"pkce"`
	// Token that the tool forwards: "id_token" or "access_token".
	Token string `json:"token"`
	// Audience and issuer that the tool expects in this token, if they differ from the client and the issuer.
	Audience    string `json:"audience"`
	TokenIssuer string `json:"tokenIssuer"`
	// Endpoints of a tool without discovery.
	AuthURL     string `json:"authURL"`
	TokenURL    string `json:"tokenURL"`
	UserInfoURL string `json:"userInfoURL"`
	// JMESPath expressions by attribute of the user.
	Attributes map[string]string `json:"attributes"`
}

type result struct {
	Error string `json:"error,omitempty"`
	Token string `json:"token"`
	// The token that the tool forwards after a refresh.
	Refreshed  string            `json:"refreshed"`
	Attributes map[string]string `json:"attributes"`
}

type tool struct {
	settings
	ctx      context.Context
	verifier *oidc.IDTokenVerifier
	config   oauth2.Config
}

func main() {
	found, err := run()
	if err != nil {
		found.Error = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func run() (result, error) {
	t := &tool{ctx: context.Background()}
	if err := json.Unmarshal([]byte(os.Getenv("SETTINGS")), &t.settings); err != nil {
		return result{}, err
	}
	t.config = oauth2.Config{
		ClientID:     t.ClientID,
		ClientSecret: t.ClientSecret,
		RedirectURL:  t.RedirectURL,
		Scopes:       t.Scopes,
		Endpoint:     oauth2.Endpoint{AuthURL: t.AuthURL, TokenURL: t.TokenURL},
	}
	if t.Issuer != "" {
		if err := t.discover(); err != nil {
			return result{}, err
		}
	}
	token, err := t.logIn()
	if err != nil {
		return result{}, err
	}
	return t.use(token)
}

func (t *tool) discover() error {
	ctx, audience := t.ctx, t.ClientID
	if t.TokenIssuer != "" {
		ctx = oidc.InsecureIssuerURLContext(ctx, t.TokenIssuer)
	}
	if t.Audience != "" {
		audience = t.Audience
	}
	provider, err := oidc.NewProvider(ctx, t.Issuer)
	if err != nil {
		return err
	}
	t.verifier = provider.Verifier(&oidc.Config{ClientID: audience})
	t.config.Endpoint = provider.Endpoint()
	return nil
}

// logIn waits for the response of a browser.
func (t *tool) logIn() (*oauth2.Token, error) {
	redirect, err := url.Parse(t.RedirectURL)
	if err != nil {
		return nil, err
	}
	received := make(chan url.Values, 1)
	mux := http.NewServeMux()
	mux.HandleFunc(redirect.Path, func(_ http.ResponseWriter, r *http.Request) { received <- r.URL.Query() })
	server := &http.Server{Addr: redirect.Host, Handler: mux}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	defer server.Close()

	state := rand.Text()
	var request, exchange []oauth2.AuthCodeOption
	if t.PKCE {
		verifier := oauth2.GenerateVerifier()
		request, exchange = append(request, oauth2.S256ChallengeOption(verifier)), append(exchange, oauth2.VerifierOption(verifier))
	}
	fmt.Println(t.config.AuthCodeURL(state, request...))
	select {
	case err := <-failed:
		return nil, err
	case response := <-received:
		if response.Get("state") != state {
			return nil, errors.New("the state is another")
		}
		if response.Has("error") {
			return nil, fmt.Errorf("%s: %s", response.Get("error"), response.Get("error_description"))
		}
		return t.config.Exchange(t.ctx, response.Get("code"), exchange...)
	}
}

func (t *tool) use(token *oauth2.Token) (found result, err error) {
	if found.Token, err = t.verified(token); err != nil {
		return
	}
	if found.Attributes, err = t.attributes(token); err != nil {
		return
	}
	if token.RefreshToken == "" {
		return
	}
	token, err = t.config.TokenSource(t.ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	if err != nil {
		return
	}
	found.Refreshed, err = t.verified(token)
	return
}

// verified returns the token that the tool forwards.
func (t *tool) verified(token *oauth2.Token) (string, error) {
	raw, _ := token.Extra(t.Token).(string)
	if t.verifier == nil {
		return raw, nil
	}
	_, err := t.verifier.Verify(t.ctx, raw)
	return raw, err
}

// attributes evaluates each expression on the claims of the id_token, and without a result, on the userinfo response.
func (t *tool) attributes(token *oauth2.Token) (map[string]string, error) {
	if len(t.Attributes) == 0 {
		return nil, nil
	}
	raw, _ := token.Extra("id_token").(string)
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return nil, errors.New("no id_token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	response, err := t.config.Client(t.ctx, token).Get(t.UserInfoURL)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	userInfo, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, text := range [][]byte{payload, userInfo} {
		var claims any
		if err := json.Unmarshal(text, &claims); err != nil {
			return nil, err
		}
		for name, path := range t.Attributes {
			value, err := jmespath.Search(path, claims)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if text, isText := value.(string); isText && found[name] == "" {
				found[name] = text
			}
		}
	}
	return found, nil
}
