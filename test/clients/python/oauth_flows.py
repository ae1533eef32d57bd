"""Every flow of OAuth 2.0 and OpenID Connect that the server supports, written with Authlib in the usual way.

`oauth_flows.py ISSUER` reads the login from standard input, and prints its results as one JSON object with the same
form as from ../go/oauth. REQUESTS_CA_BUNDLE names the trusted CA.
"""

import json
import sys
from html.parser import HTMLParser
from urllib.parse import urljoin

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwk, jwt


class Form(HTMLParser):
    """The form of a page: its target and its fields."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields = "", {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "form":
            self.action = attributes["action"]
        elif tag == "input":
            self.fields[attributes["name"]] = attributes.get("value", "")


class Browser:
    """Keeps cookies, fills in forms, and stops at redirects to other servers."""

    def __init__(self, issuer):
        self.issuer = issuer
        self.session = requests.Session()

    def open(self, url, form=None):
        while True:
            response = self.session.request("GET" if form is None else "POST", url, data=form, allow_redirects=False)
            if not response.is_redirect:
                return response.url, response.text
            url, form = urljoin(url, response.headers["Location"]), None
            if not url.startswith(f"{self.issuer}/"):
                return url, ""

    def send(self, page, **values):
        url, text = page
        form = Form(text)
        return self.open(urljoin(url, form.action), {**form.fields, **values})


class Flows:
    def __init__(self, issuer, known):
        self.known = known
        self.browser = Browser(issuer)
        self.server = requests.get(f"{issuer}/.well-known/openid-configuration").json()
        self.keys = jwk.KeySet.import_key_set(requests.get(self.server["jwks_uri"]).json())

    def client(self, name, **options):
        return OAuth2Session(name, self.known["clients"][name], **options)

    def identity(self, token, client, nonce=None):
        """Returns the claims of an id_token validated by Authlib."""
        verified = jwt.decode(token["id_token"], self.keys, algorithms=["RS256"])
        options = {"iss": {"value": self.server["issuer"]}, "aud": {"value": client}}
        params = {"client_id": client, "access_token": token["access_token"]}
        claims = CodeIDToken(verified.claims, verified.header, options, params | ({"nonce": nonce} if nonce else {}))
        claims.validate()
        return claims

    def code(self):
        verifier, nonce = generate_token(48), generate_token(20)
        client = self.client("console", scope="openid profile", redirect_uri=self.known["callback"],
                             code_challenge_method="S256")
        url, state = client.create_authorization_url(self.server["authorization_endpoint"], code_verifier=verifier,
                                                     nonce=nonce)
        consent = self.browser.send(self.browser.open(url), username=self.known["username"],
                                    password=self.known["password"])
        callback, _ = self.browser.send(consent, decision="allow")
        token = client.fetch_token(self.server["token_endpoint"], authorization_response=callback, state=state,
                                   code_verifier=verifier)
        claims = self.identity(token, "console", nonce)
        person = client.get(self.server["userinfo_endpoint"]).json()
        before = dict(token)
        refreshed = client.refresh_token(self.server["token_endpoint"])
        seen = {
            "scope": before["scope"],
            "user": claims["preferred_username"],
            "userinfo": person["sub"] == claims["sub"] and person["preferred_username"],
            "rotated": refreshed["refresh_token"] != before["refresh_token"],
            "same user": self.identity(refreshed, "console")["sub"] == claims["sub"],
            "introspected": self.introspected(client, refreshed["access_token"]),
        }
        client.revoke_token(self.server["revocation_endpoint"], refreshed["refresh_token"], "refresh_token")
        return {**seen, "revoked": self.refused(client, refreshed)}

    def introspected(self, client, token):
        response = client.introspect_token(self.server["introspection_endpoint"], token).json()
        return [response["active"], response.get("client_id"), response.get("username")]

    def refused(self, client, token):
        """Returns how userinfo, a refresh and introspection respond to the tokens of a revoked session."""
        try:
            client.refresh_token(self.server["token_endpoint"], token["refresh_token"])
            error = ""
        except OAuthError as caught:
            error = caught.error
        bearer = {"Authorization": f"Bearer {token['access_token']}"}
        status = requests.get(self.server["userinfo_endpoint"], headers=bearer).status_code
        return [status, error, client.introspect_token(self.server["introspection_endpoint"],
                                                       token["access_token"]).json()["active"]]

    def password(self):
        client = self.client("platform", scope="openid profile")
        token = client.fetch_token(self.server["token_endpoint"], username=self.known["username"],
                                   password=self.known["password"])
        return {"user": self.identity(token, "platform")["preferred_username"],
                "introspected": self.introspected(client, token["access_token"])}

    def wrong_password(self):
        try:
            self.client("platform").fetch_token(self.server["token_endpoint"], username="nobody-of-python",
                                                password="wrong")
        except OAuthError as caught:
            return caught.error
        return ""

    def client_credentials(self):
        client = self.client("robot")
        token = client.fetch_token(self.server["token_endpoint"], grant_type="client_credentials")
        return {"refresh token": "refresh_token" in token,
                "introspected": self.introspected(client, token["access_token"])}


def main(issuer):
    flows = Flows(issuer, json.load(sys.stdin))
    print(json.dumps({
        "issuer": flows.server["issuer"],
        "authorization code": flows.code(),
        "password": flows.password(),
        "wrong password": flows.wrong_password(),
        "client credentials": flows.client_credentials(),
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
