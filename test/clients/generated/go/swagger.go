package main

import (
	"errors"
	"net/url"

	httptransport "github.com/go-openapi/runtime/client"
	"platform.io/test/clients/generated/swagger/client"
	"platform.io/test/clients/generated/swagger/client/oauth"
	"platform.io/test/clients/generated/swagger/client/resources"
)

// swagger repeats the program's requests with a client generated from Swagger 2.0.
func (c *cases) swagger(token string) (any, error) {
	at, err := url.Parse(c.url)
	if err != nil {
		return nil, err
	}
	platform := client.New(httptransport.New(at.Host, "/", []string{at.Scheme}), nil)
	admin := httptransport.BearerToken(token)
	pages := resources.NewListNodesParams().WithSortBy(new("name")).WithAscending(new(true))
	page, err := platform.Resources.ListNodes(pages.WithLimit(new(int64(2))).WithPage(new(int64(2))), admin)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, node := range page.Payload.Items {
		names = append(names, *node.Metadata.Name)
	}
	found, err := platform.Resources.GetNode(resources.NewGetNodeParams().WithPathName("node-1"), admin)
	if err != nil {
		return nil, err
	}
	_, err = platform.Resources.GetNode(resources.NewGetNodeParams().WithPathName("no-such"), admin)
	var missing *resources.GetNodeNotFound
	if !errors.As(err, &missing) {
		return nil, errors.Join(errors.New("a node that is not there is no typed error"), err)
	}
	wrong := oauth.NewPostOauthTokenParams().WithGrantType("password").WithUsername(new("nobody-of-swagger")).WithPassword(new("x"))
	_, err = platform.Oauth.PostOauthToken(wrong, httptransport.BasicAuth("platform", "platform"))
	var refusal *oauth.PostOauthTokenBadRequest
	if !errors.As(err, &refusal) {
		return nil, errors.Join(errors.New("a wrong password is no typed error"), err)
	}
	status := missing.Payload
	return seen{
		"page":           []any{names, of(page.Payload.TotalItems)},
		"found":          []any{of(found.Payload.Kind), found.Payload.Status.NodeInfo.OperatingSystem},
		"missing":        []any{of(status.Code), of(status.Reason), status.Details.Kind, status.Details.Name},
		"wrong password": []any{refusal.Code(), of(refusal.Payload.Error)},
	}, nil
}
