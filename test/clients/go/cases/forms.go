package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
)

// tableOf returns a table without the values that differ between runs.
func tableOf(body []byte) any {
	var table map[string]any
	check(json.Unmarshal(body, &table))
	if table["kind"] != "Table" {
		return statusIn(body)
	}
	withoutTimes(map[string]any{"object": table})
	metadata, _ := table["metadata"].(map[string]any)
	_, metadata["continue"] = metadata["continue"]
	return table
}

func init() {
	const json, proto, yaml = "application/json", "application/vnd.kubernetes.protobuf", "application/yaml"
	as := func(kind, version string) string { return ";as=" + kind + ";g=meta.k8s.io;v=" + version }
	for name, accept := range map[string]string{
		"nothing": "", "anything": "*/*", "json": json, "yaml": yaml, "protobuf": proto, "html": "text/html",
		"protobuf or json":  proto + "," + json,
		"cbor or json":      "application/cbor," + json,
		"any application":   "application/*",
		"json at last":      "text/html;q=0.9," + json + ";q=0.1",
		"no json":           json + ";q=0",
		"metadata informer": proto + as("PartialObjectMetadataList", "v1") + "," + json + as("PartialObjectMetadataList", "v1") + "," + json,
		"metadata":          json + as("PartialObjectMetadataList", "v1"),
		"metadata v1beta1":  json + as("PartialObjectMetadataList", "v1beta1"),
		"metadata yaml":     yaml + as("PartialObjectMetadataList", "v1"),
		"metadata of one":   json + as("PartialObjectMetadata", "v1"),
		"table":             json + as("Table", "v1"),
		"table v1beta1":     json + as("Table", "v1beta1"),
		"table v2":          json + as("Table", "v2"),
		"table yaml":        yaml + as("Table", "v1"),
		"table protobuf":    proto + as("Table", "v1"),
		"kubectl":           json + as("Table", "v1") + "," + json + as("Table", "v1beta1") + "," + json,
		"unknown kind":      json + as("Chair", "v1"),
		"unknown kind or":   json + as("Chair", "v1") + "," + json,
		"other group":       json + ";as=Table;g=example.com;v=v1",
		"kind alone":        json + ";as=Table",
		"stream":            json + ";stream=watch",
		"other stream":      json + ";stream=other",
		"strange parameter": json + ";charset=utf-8;nothing=x",
		"garbage":           "garbage",
	} {
		for form, suffix := range map[string]string{"list": "?limit=1", "one": "/node-3", "watch": "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dnobody"} {
			if form == "watch" {
				form = "watch/accept"
			}
			cases[strings.Replace("accept/"+form, "accept/watch/", "watch/", 1)+" "+name] = func(ctx context.Context, t *target) any {
				found := t.get(ctx, suffix, accept)
				kind := statusIn(found.body)
				if status, refused := kind.(map[string]any); refused {
					kind = status["reason"]
				}
				return fmt.Sprint(found.status, " ", found.header.Get("Content-Type"), " ", kind)
			}
		}
	}
	for suffix, accept := range map[string]string{
		"?limit=1": "text/html", "/node-3": json + as("Table", "v2"), "?watch=true": yaml,
		"?limit=2": json + as("PartialObjectMetadata", "v1"), "/node-4": json + as("PartialObjectMetadataList", "v1"),
	} {
		cases["refused/"+suffix+" as "+accept] = func(ctx context.Context, t *target) any {
			return statusIn(t.get(ctx, suffix, accept).body)
		}
	}

	for _, query := range []string{"", "?limit=2", "?limit=1&includeObject=None", "?limit=1&includeObject=Object", "?includeObject=x",
		"?labelSelector=nothing", "?fieldSelector=spec.unschedulable%3Dtrue", "/node-3", "/node-3?includeObject=Object", "/nobody"} {
		cases["table/"+query] = func(ctx context.Context, t *target) any {
			return tableOf(t.get(ctx, query, json+as("Table", "v1")).body)
		}
	}
	for _, query := range []string{"/node-3?pretty=true", "/node-3?pretty=1", "/node-3?pretty=false", "/node-3"} {
		cases["pretty"+query] = func(ctx context.Context, t *target) any {
			return strings.Count(string(t.get(ctx, query, json).body), "\n") > 1
		}
	}

	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodHead} {
		for _, suffix := range []string{"?dryRun=All&labelSelector=nothing", "/nobody?dryRun=All"} {
			cases["method/"+method+" "+suffix] = func(ctx context.Context, t *target) any {
				found := t.do(ctx, method, suffix, json)
				if method == http.MethodHead {
					return fmt.Sprint(found.status)
				}
				seen, _ := statusIn(found.body).(map[string]any)
				return fmt.Sprint(found.status, " ", seen["reason"])
			}
		}
	}
	cases["method/allowed"] = func(ctx context.Context, t *target) any {
		return t.do(ctx, http.MethodOptions, "", json).header.Get("Allow")
	}
	cases["method/patch by client-go"] = func(ctx context.Context, t *target) any {
		_, err := t.dynamic().Patch(ctx, "nobody", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		status, _ := refusal(err).(map[string]any)
		return fmt.Sprint(status["reason"])
	}

	cases["discovery/resource"] = func(_ context.Context, t *target) any {
		client := must(discovery.NewDiscoveryClientForConfig(t.config))
		list := must(client.ServerResourcesForGroupVersion(t.gv.String()))
		for _, resource := range list.APIResources {
			if resource.Name == "nodes" {
				return fmt.Sprintf("%s %s %s namespaced=%v %v %v", resource.Kind, resource.Name, resource.SingularName, resource.Namespaced, resource.Verbs, resource.ShortNames)
			}
		}
		return list
	}
	// Reads the discovery documents of all groups, as a RESTMapper does.
	cases["discovery/preferred"] = func(_ context.Context, t *target) any {
		client := must(discovery.NewDiscoveryClientForConfig(t.config))
		for _, list := range must(client.ServerPreferredResources()) {
			for _, resource := range list.APIResources {
				if list.GroupVersion == t.gv.String() && resource.Name == "nodes" {
					return []any{resource.Kind, resource.SingularName, resource.Namespaced}
				}
			}
		}
		return "not there"
	}
	cases["discovery/openapi v3"] = func(_ context.Context, t *target) any {
		root := openapi3.NewRoot(must(discovery.NewDiscoveryClientForConfig(t.config)).OpenAPIV3())
		document := must(root.GVSpec(t.gv))
		collection := document.Paths.Paths[t.path()].Get
		kind, _ := collection.Extensions["x-kubernetes-group-version-kind"].(map[string]any)
		return []any{collection.Extensions["x-kubernetes-action"], kind["kind"], kind["group"], kind["version"] == t.gv.Version}
	}
}
