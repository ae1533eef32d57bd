import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import org.springframework.security.oauth2.client.endpoint.OAuth2ClientCredentialsGrantRequest;
import org.springframework.security.oauth2.client.endpoint.OAuth2RefreshTokenGrantRequest;
import org.springframework.security.oauth2.client.endpoint.RestClientAuthorizationCodeTokenResponseClient;
import org.springframework.security.oauth2.client.endpoint.RestClientClientCredentialsTokenResponseClient;
import org.springframework.security.oauth2.client.endpoint.RestClientRefreshTokenTokenResponseClient;
import org.springframework.security.oauth2.client.authentication.OAuth2LoginAuthenticationToken;
import org.springframework.security.oauth2.client.oidc.authentication.OidcAuthorizationCodeAuthenticationProvider;
import org.springframework.security.oauth2.client.oidc.userinfo.OidcUserService;
import org.springframework.security.oauth2.client.registration.ClientRegistration;
import org.springframework.security.oauth2.client.registration.ClientRegistrations;
import org.springframework.security.oauth2.client.web.OAuth2AuthorizationRequestCustomizers;
import org.springframework.security.oauth2.core.AuthorizationGrantType;
import org.springframework.security.oauth2.core.OAuth2AccessToken;
import org.springframework.security.oauth2.core.endpoint.OAuth2AccessTokenResponse;
import org.springframework.security.oauth2.core.endpoint.OAuth2AuthorizationExchange;
import org.springframework.security.oauth2.core.endpoint.OAuth2AuthorizationRequest;
import org.springframework.security.oauth2.core.endpoint.OAuth2AuthorizationResponse;
import org.springframework.security.oauth2.core.endpoint.OAuth2ParameterNames;
import org.springframework.security.oauth2.core.oidc.endpoint.OidcParameterNames;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.security.oauth2.jwt.JwtDecoders;
import org.springframework.security.oauth2.jwt.JwtValidators;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.oauth2.server.resource.introspection.SpringOpaqueTokenIntrospector;
import org.springframework.web.client.RestClient;
import org.springframework.web.util.UriComponents;
import org.springframework.web.util.UriComponentsBuilder;

/**
 * The flows of a web application and a resource server with Spring Security, without servlets. The program reads the
 * properties of application.yaml from one line, separated by tabs. It prints the address to which a web application
 * redirects the browser for the login, reads the address to which the browser returned, and prints its results.
 */
public class Flows {
  private final String issuer;
  private final Properties settings;
  private final ClientRegistration registration;
  private final Map<String, Object> seen = new TreeMap<>();

  private Flows(Properties settings) {
    this.issuer = settings.getProperty("issuer-uri");
    this.settings = settings;
    this.registration =
        ClientRegistrations.fromIssuerLocation(issuer)
            .registrationId("platform")
            .clientId(settings.getProperty("client-id"))
            .clientSecret(settings.getProperty("client-secret"))
            .redirectUri(settings.getProperty("redirect-uri"))
            .scope(settings.getProperty("scope").split(", *"))
            .userNameAttributeName(settings.getProperty("user-name-attribute"))
            .build();
  }

  public static void main(String[] args) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Properties settings = new Properties();
    settings.load(new StringReader(input.readLine().replace('\t', '\n')));
    Flows flows = new Flows(settings);
    flows.run(input);
    flows.seen.forEach((name, value) -> System.out.println(name + ": " + value));
  }

  private void run(BufferedReader input) throws Exception {
    OAuth2LoginAuthenticationToken login = login(input);
    OidcUser user = (OidcUser) login.getPrincipal();
    OAuth2AccessToken access = login.getAccessToken();
    seen.put("user", user.getName() + " " + user.getClaimAsStringList("groups"));
    seen.put("id_token", user.getIdToken().getAudience());
    seen.put("userinfo", user.getUserInfo().getClaimAsString("preferred_username"));

    OAuth2AccessTokenResponse refreshed =
        new RestClientRefreshTokenTokenResponseClient()
            .getTokenResponse(new OAuth2RefreshTokenGrantRequest(registration, access, login.getRefreshToken()));
    seen.put(
        "refreshed",
        !refreshed.getRefreshToken().getTokenValue().equals(login.getRefreshToken().getTokenValue()));

    String token = refreshed.getAccessToken().getTokenValue();
    seen.put("resource server by default", outcome(() -> described(JwtDecoders.fromIssuerLocation(issuer).decode(token))));
    seen.put("resource server of RFC 9068", outcome(() -> described(ofRFC9068(registration.getClientId()).decode(token))));
    seen.put("resource server of RFC 9068, id_token", outcome(() -> described(ofRFC9068(registration.getClientId()).decode(user.getIdToken().getTokenValue()))));
    seen.put("introspection", outcome(() -> introspect(token)));
    revoke(refreshed.getRefreshToken().getTokenValue());
    seen.put("introspection after revocation", outcome(() -> introspect(token)));

    ClientRegistration robot =
        ClientRegistration.withClientRegistration(registration)
            .clientId(settings.getProperty("robot"))
            .clientSecret(settings.getProperty("robot-secret"))
            .authorizationGrantType(AuthorizationGrantType.CLIENT_CREDENTIALS)
            .scope(Set.of())
            .build();
    String own =
        new RestClientClientCredentialsTokenResponseClient()
            .getTokenResponse(new OAuth2ClientCredentialsGrantRequest(robot))
            .getAccessToken()
            .getTokenValue();
    seen.put("client credentials", described(ofRFC9068(robot.getClientId()).decode(own)));
  }

  /** Authenticates as oauth2Login does: code, PKCE, nonce, id_token and userinfo. */
  private OAuth2LoginAuthenticationToken login(BufferedReader input) throws Exception {
    String nonce = random();
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(nonce.getBytes(StandardCharsets.US_ASCII));
    String hashed = Base64.getUrlEncoder().withoutPadding().encodeToString(hash);
    OAuth2AuthorizationRequest.Builder building =
        OAuth2AuthorizationRequest.authorizationCode()
            .authorizationUri(registration.getProviderDetails().getAuthorizationUri())
            .clientId(registration.getClientId())
            .redirectUri(registration.getRedirectUri())
            .scopes(registration.getScopes())
            .state(random())
            .attributes(attributes -> {
              attributes.put(OAuth2ParameterNames.REGISTRATION_ID, registration.getRegistrationId());
              attributes.put(OidcParameterNames.NONCE, nonce);
            })
            .additionalParameters(parameters -> parameters.put(OidcParameterNames.NONCE, hashed));
    OAuth2AuthorizationRequestCustomizers.withPkce().accept(building);
    OAuth2AuthorizationRequest request = building.build();
    System.out.println("open " + request.getAuthorizationRequestUri());
    UriComponents returned = UriComponentsBuilder.fromUriString(input.readLine()).build();
    OAuth2AuthorizationResponse response =
        OAuth2AuthorizationResponse.success(returned.getQueryParams().getFirst("code"))
            .redirectUri(registration.getRedirectUri())
            .state(UriComponentsBuilder.fromUriString("?" + returned.getQuery()).build().getQueryParams().getFirst("state"))
            .build();
    return (OAuth2LoginAuthenticationToken)
        new OidcAuthorizationCodeAuthenticationProvider(
                new RestClientAuthorizationCodeTokenResponseClient(), new OidcUserService())
            .authenticate(
                new OAuth2LoginAuthenticationToken(
                    registration, new OAuth2AuthorizationExchange(request, response)));
  }

  private static String random() {
    byte[] bytes = new byte[32];
    new SecureRandom().nextBytes(bytes);
    return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
  }

  private NimbusJwtDecoder ofRFC9068(String client) {
    NimbusJwtDecoder decoder = JwtDecoders.fromIssuerLocation(issuer);
    decoder.setJwtValidator(
        JwtValidators.createAtJwtValidator().issuer(issuer).audience(issuer).clientId(client).build());
    return decoder;
  }

  private static String described(Jwt token) {
    return token.getHeaders().get("alg") + " " + token.getAudience() + " " + token.getClaimAsString("username");
  }

  private String introspect(String token) {
    Map<String, Object> metadata = registration.getProviderDetails().getConfigurationMetadata();
    Map<String, Object> found =
        SpringOpaqueTokenIntrospector.withIntrospectionUri((String) metadata.get("introspection_endpoint"))
            .clientId(registration.getClientId())
            .clientSecret(registration.getClientSecret())
            .build()
            .introspect(token)
            .getAttributes();
    return found.get("username") + " " + new TreeSet<>((Collection<?>) found.get("groups"));
  }

  private void revoke(String token) {
    Map<String, Object> metadata = registration.getProviderDetails().getConfigurationMetadata();
    RestClient.create()
        .post()
        .uri((String) metadata.get("revocation_endpoint"))
        .headers(headers -> headers.setBasicAuth(registration.getClientId(), registration.getClientSecret()))
        .header("content-type", "application/x-www-form-urlencoded")
        .body("token=" + token)
        .retrieve()
        .toBodilessEntity();
  }

  /** Returns the result, or the message of the error. */
  private static String outcome(Callable<String> work) {
    try {
      return work.call();
    } catch (Exception error) {
      return "refused: " + error.getMessage();
    }
  }
}
