// What a program in Go does with clients made by oapi-codegen and by go-swagger: generated URL reads who logs in from standard input, and
// prints what it saw as one JSON object, comparable with those of the other languages. The packages platform, customresources and swagger
// are made beside a copy of this file. Whom it trusts is said by SSL_CERT_FILE.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"platform.io/test/clients/generated/customresources"
	"platform.io/test/clients/generated/platform"
)

type known struct {
	Username          string `json:"username"`
	Password          string `json:"password"`
	Rightless         string `json:"rightless"`
	RightlessPassword string `json:"rightlessPassword"`
	Namespace         string `json:"namespace"`
}

type seen map[string]any

type cases struct {
	known
	ctx      context.Context
	url      string
	open     *platform.ClientWithResponses
	platform *platform.ClientWithResponses
	cluster  *customresources.ClientWithResponses
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generated URL < WHO")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// as sends a token with each request.
func as(token string) func(context.Context, *http.Request) error {
	return func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
}

func run(url string) (err error) {
	c := &cases{ctx: context.Background(), url: url}
	if err := json.NewDecoder(os.Stdin).Decode(&c.known); err != nil {
		return err
	}
	if c.open, err = platform.NewClientWithResponses(url); err != nil {
		return err
	}
	token, err := c.login(c.Username, c.Password)
	if err != nil {
		return err
	}
	if c.platform, err = platform.NewClientWithResponses(url, platform.WithRequestEditorFn(as(token))); err != nil {
		return err
	}
	c.cluster, err = customresources.NewClientWithResponses(url, customresources.WithRequestEditorFn(as(token)))
	if err != nil {
		return err
	}
	found := seen{}
	for name, look := range map[string]func() (any, error){
		"wrong password":  c.wrongPassword,
		"nodes":           c.nodes,
		"node":            c.node,
		"forbidden":       c.forbidden,
		"user":            c.user,
		"who am I":        c.whoAmI,
		"logs":            c.logs,
		"custom resource": c.customResource,
		"swagger":         func() (any, error) { return c.swagger(token) },
	} {
		if found[name], err = look(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func passwordOf(username, password string) platform.TokenRequest {
	return platform.TokenRequest{
		GrantType:    platform.TokenRequestGrantTypePassword,
		Username:     &username,
		Password:     &password,
		ClientId:     new("platform"),
		ClientSecret: new("platform"),
	}
}

func (c *cases) login(username, password string) (string, error) {
	answer, err := c.open.PostOauthTokenWithFormdataBodyWithResponse(c.ctx, passwordOf(username, password))
	if err != nil {
		return "", err
	}
	if answer.JSON200 == nil {
		return "", fmt.Errorf("no login: %s", answer.Body)
	}
	return answer.JSON200.AccessToken, nil
}

func (c *cases) wrongPassword() (any, error) {
	answer, err := c.open.PostOauthTokenWithFormdataBodyWithResponse(c.ctx, passwordOf("nobody-of-go", "x"))
	if err != nil {
		return nil, err
	}
	return []any{answer.StatusCode(), answer.JSON400.Error}, nil
}

// of is what a pointer leads to, if to anything.
func of[T any](pointer *T) any {
	if pointer == nil {
		return nil
	}
	return *pointer
}

func refused(status *platform.Status) []any {
	return []any{status.Code, status.Reason, of(status.Details.Kind), of(status.Details.Name)}
}

// unexpected is said of an answer that has not the status that it should have.
func unexpected(body []byte) error {
	return fmt.Errorf("unexpected: %s", body)
}

func (c *cases) nodes() (any, error) {
	page, err := c.platform.ListNodesWithResponse(c.ctx, &platform.ListNodesParams{
		SortBy: new("name"), Ascending: new(true), Limit: new(2), Page: new(2),
	})
	if err != nil {
		return nil, err
	}
	if page.JSON200 == nil {
		return nil, unexpected(page.Body)
	}
	names := []string{}
	for _, node := range page.JSON200.Items {
		names = append(names, node.Metadata.Name)
	}
	selected, err := c.platform.ListNodesWithResponse(c.ctx, &platform.ListNodesParams{
		LabelSelector: new("kubernetes.io/os=linux,!broken"),
		Names:         new("node-1,no-such"),
		Fields:        new("metadata.labels"),
	})
	if err != nil {
		return nil, err
	}
	if selected.JSON200 == nil {
		return nil, unexpected(selected.Body)
	}
	found := []any{}
	for _, node := range selected.JSON200.Items {
		found = append(found, []any{node.Metadata.Name, (*node.Metadata.Labels)["kubernetes.io/os"], of(node.Status)})
	}
	return seen{"page": []any{names, page.JSON200.TotalItems}, "selected": found}, nil
}

func (c *cases) node() (any, error) {
	found, err := c.platform.GetNodeWithResponse(c.ctx, "node-1", nil)
	if err != nil {
		return nil, err
	}
	if found.JSON200 == nil {
		return nil, unexpected(found.Body)
	}
	missing, err := c.platform.GetNodeWithResponse(c.ctx, "no-such", nil)
	if err != nil {
		return nil, err
	}
	if missing.JSON404 == nil {
		return nil, unexpected(missing.Body)
	}
	var ready any
	for _, condition := range *found.JSON200.Status.Conditions {
		if *condition.Type == "Ready" {
			ready = of(condition.Status)
		}
	}
	node := found.JSON200
	return seen{
		"found":   []any{node.Kind, node.Metadata.Name, ready, of(node.Status.NodeInfo.OperatingSystem)},
		"missing": refused(missing.JSON404),
	}, nil
}

func (c *cases) forbidden() (any, error) {
	token, err := c.login(c.Rightless, c.RightlessPassword)
	if err != nil {
		return nil, err
	}
	answer, err := c.open.ListNodesWithResponse(c.ctx, nil, as(token))
	if err != nil {
		return nil, err
	}
	if answer.JSON403 == nil {
		return nil, unexpected(answer.Body)
	}
	return refused(answer.JSON403), nil
}

func (c *cases) whoAmI() (any, error) {
	answer, err := c.platform.GetIamWhoamiWithResponse(c.ctx, nil)
	if err != nil {
		return nil, err
	}
	if answer.JSON200 == nil {
		return nil, unexpected(answer.Body)
	}
	status := answer.JSON200.Status
	return []any{status.UserInfo.Username, status.UserInfo.Groups, status.User.PasswordChangeRequired}, nil
}

func (c *cases) logs() (any, error) {
	found, err := c.platform.GetLoggingLogsWithResponse(c.ctx, &platform.GetLoggingLogsParams{
		Namespaces: &c.Namespace, LogQuery: new("SECOND"), Size: new(1),
	})
	if err != nil {
		return nil, err
	}
	if found.JSON200 == nil {
		return nil, unexpected(found.Body)
	}
	records, err := found.JSON200.AsLogQueryRecords()
	if err != nil {
		return nil, err
	}
	lines := []any{}
	for _, record := range records.Query.Records {
		lines = append(lines, []any{record.Container, record.Log})
	}
	counted, err := c.platform.GetLoggingLogsWithResponse(c.ctx, &platform.GetLoggingLogsParams{
		Namespaces: &c.Namespace, Operation: new(platform.GetLoggingLogsParamsOperationStatistics),
	})
	if err != nil {
		return nil, err
	}
	statistics, err := counted.JSON200.AsLogQueryStatistics()
	if err != nil {
		return nil, err
	}
	wrong, err := c.platform.GetLoggingLogsWithResponse(c.ctx, &platform.GetLoggingLogsParams{
		StartTime: new(1_795_341_600_000),
	})
	if err != nil {
		return nil, err
	}
	status := wrong.JSON400
	return seen{
		"query":      []any{records.Query.Total, lines},
		"statistics": []any{statistics.Statistics.Containers, statistics.Statistics.Logs},
		"wrong":      []any{of(wrong.JSON200), status.Reason, of((*status.Details.Causes)[0].Field)},
	}, nil
}
