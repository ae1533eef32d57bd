package main

import (
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

const formType = "application/x-www-form-urlencoded"

var (
	actions = regexp.MustCompile(`<form [^>]*action="([^"]*)"`)
	inputs  = regexp.MustCompile(`<input\s[^>]*>`)
	names   = regexp.MustCompile(`\sname="([^"]*)"`)
	values  = regexp.MustCompile(`\svalue="([^"]*)"`)
)

func body(form url.Values) io.Reader { return strings.NewReader(form.Encode()) }

func first(pattern *regexp.Regexp, text string) string {
	if found := pattern.FindStringSubmatch(text); found != nil {
		return html.UnescapeString(found[1])
	}
	return ""
}

// logIn acts as a user with a browser: it logs in, consents, and returns the final redirect.
func (f *flows) logIn(begin string) (*url.URL, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	var left *url.URL
	browser := &http.Client{Jar: jar, CheckRedirect: func(request *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(request.URL.String(), f.issuer+"/") {
			return nil
		}
		left = request.URL
		return http.ErrUseLastResponse
	}}
	response, err := browser.Get(begin)
	for _, filled := range []url.Values{{"username": {f.Username}, "password": {f.Password}}, {"decision": {"allow"}}} {
		if err != nil {
			return nil, err
		}
		if response, err = send(browser, response, filled); err != nil {
			return nil, err
		}
	}
	response.Body.Close()
	if left == nil {
		return nil, errors.New("the browser has not come back to the client")
	}
	return left, nil
}

// send fills in and submits the form of a page.
func send(browser *http.Client, page *http.Response, filled url.Values) (*http.Response, error) {
	defer page.Body.Close()
	text, err := io.ReadAll(page.Body)
	if err != nil {
		return nil, err
	}
	form := url.Values{}
	for _, input := range inputs.FindAllString(string(text), -1) {
		form.Set(first(names, input), first(values, input))
	}
	for name, value := range filled {
		form[name] = value
	}
	action, err := page.Request.URL.Parse(first(actions, string(text)))
	if err != nil {
		return nil, err
	}
	return browser.PostForm(action.String(), form)
}
