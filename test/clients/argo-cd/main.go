// The login of Argo CD's API server, in its own code. `argo-cd ADDRESS` listens for browsers. ARGOCD_DATA has the data
// of the ConfigMaps argocd-cm and argocd-rbac-cm in YAML. CLIENT_SECRET has the value of oidc.clientSecret in the
// Secret argocd-secret. SSL_CERT_FILE names the trusted CA.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/util/cache"
	httputil "github.com/argoproj/argo-cd/v3/util/http"
	jwtutil "github.com/argoproj/argo-cd/v3/util/jwt"
	"github.com/argoproj/argo-cd/v3/util/oidc"
	"github.com/argoproj/argo-cd/v3/util/settings"
	"github.com/golang-jwt/jwt/v5"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := serve(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func serve(address string) error {
	var data map[string]string
	if err := yaml.Unmarshal([]byte(os.Getenv("ARGOCD_DATA")), &data); err != nil {
		return err
	}
	config := &settings.ArgoCDSettings{
		URL:             data["url"],
		OIDCConfigRAW:   data["oidc.config"],
		Secrets:         map[string]string{"oidc.clientSecret": os.Getenv("CLIENT_SECRET")},
		ServerSignature: []byte("signs the state of a login"),
	}
	app, err := oidc.NewClientApp(config, "", nil, "/", cache.NewInMemoryCache(time.Hour))
	if err != nil {
		return err
	}
	var scopes []string
	if err := yaml.Unmarshal([]byte(data["scopes"]), &scopes); err != nil {
		return err
	}
	provider := oidc.NewOIDCProvider(config.IssuerURL(), http.DefaultClient)
	http.HandleFunc(common.LoginEndpoint, app.HandleLogin)
	http.HandleFunc(common.CallbackEndpoint, app.HandleCallback)
	http.HandleFunc("/api/v1/session/userinfo", func(w http.ResponseWriter, r *http.Request) {
		claims, err := claimsOf(r, provider, config)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		// The policies of argocd-rbac-cm name these groups.
		json.NewEncoder(w).Encode(jwtutil.GetGroups(claims, scopes))
	})
	return http.ListenAndServe(address, nil)
}

// claimsOf verifies the token, which a browser sends in cookies, and the CLI as a bearer token.
func claimsOf(r *http.Request, provider oidc.Provider, config *settings.ArgoCDSettings) (jwt.MapClaims, error) {
	raw, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		var err error
		if raw, err = httputil.JoinCookies(common.AuthCookieName, r.Cookies()); err != nil {
			return nil, err
		}
	}
	token, err := provider.Verify(raw, config)
	if err != nil {
		return nil, err
	}
	var claims jwt.MapClaims
	err = token.Claims(&claims)
	return claims, err
}
