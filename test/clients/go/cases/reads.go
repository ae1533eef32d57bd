package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// digest returns the hash of an object without kind, apiVersion and managedFields.
func digest(object runtime.Object) string {
	content := must(runtime.DefaultUnstructuredConverter.ToUnstructured(object))
	unstructured.RemoveNestedField(content, "apiVersion")
	unstructured.RemoveNestedField(content, "kind")
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	return fmt.Sprintf("%x", sha256.Sum256(must(json.Marshal(content))))[:16]
}

// listed describes a list: its kind, its revision and each item.
func listed(list runtime.Object, mark string) any {
	accessor := must(meta.ListAccessor(list))
	items, kinds := []string{}, map[string]bool{}
	check(meta.EachListItem(list, func(item runtime.Object) error {
		kind := item.GetObjectKind().GroupVersionKind()
		kinds[kind.GroupVersion().String()+" "+kind.Kind] = true
		name := must(meta.Accessor(item)).GetName()
		if name != "case" {
			name += " " + digest(item)
		}
		items = append(items, name)
		return nil
	}))
	kind := list.GetObjectKind().GroupVersionKind()
	return map[string]any{
		"kind":            kind.GroupVersion().String() + " " + kind.Kind,
		"resourceVersion": since(accessor.GetResourceVersion(), mark) != "earlier",
		"continue":        accessor.GetContinue() != "",
		"remaining":       accessor.GetRemainingItemCount(),
		"items":           items,
		"kinds of items":  kinds,
	}
}

func names(list *unstructured.UnstructuredList) string {
	found := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		found = append(found, item.GetName())
	}
	return strings.Join(found, " ")
}

// snapshot describes a chunk of a list and its revision.
func snapshot(list *unstructured.UnstructuredList, err error, mark string) any {
	if err != nil {
		return refusal(err)
	}
	return chunkOf(list, since(list.GetResourceVersion(), mark))
}

// chunk describes a chunk of a list, and whether its revision is not older than the mark.
func chunk(list *unstructured.UnstructuredList, err error, mark string) any {
	if err != nil {
		return refusal(err)
	}
	return chunkOf(list, since(list.GetResourceVersion(), mark) != "earlier")
}

func chunkOf(list *unstructured.UnstructuredList, when any) any {
	return map[string]any{
		"names":           names(list),
		"resourceVersion": when,
		"continue":        list.GetContinue() != "",
		"remaining":       list.GetRemainingItemCount(),
	}
}

// tokenOf returns a continue token in the format of kube-apiserver, for cases with expired and invalid tokens.
func tokenOf(version int64, start string) string {
	return base64.RawURLEncoding.EncodeToString(must(json.Marshal(map[string]any{
		"v": "meta.k8s.io/v1", "rv": version, "start": start,
	})))
}

func init() {
	cases["list/dynamic"] = func(ctx context.Context, t *target) any {
		mark := t.writer.create(ctx, "case", nil)
		return listed(must(t.dynamic().List(ctx, metav1.ListOptions{})), mark)
	}
	cases["list/metadata"] = func(ctx context.Context, t *target) any {
		mark := t.writer.create(ctx, "case", nil)
		return listed(must(t.metadata().List(ctx, metav1.ListOptions{})), mark)
	}
	cases["list/typed"] = func(ctx context.Context, t *target) any {
		mark := t.writer.create(ctx, "case", nil)
		client, codec := t.typed()
		list := &corev1.NodeList{}
		check(client.Get().Resource("nodes").VersionedParams(&metav1.ListOptions{}, codec).Do(ctx).Into(list))
		return listed(list, mark)
	}
	for _, selector := range []metav1.ListOptions{
		{LabelSelector: "kubernetes.io/hostname in (node-2,node-5),!nothing"},
		{LabelSelector: "kubernetes.io/hostname notin (node-2)"},
		{LabelSelector: "nothing=at-all"},
		{LabelSelector: "kubernetes.io/hostname=node-4", Limit: 1},
		{LabelSelector: "kubernetes.io/hostname", Limit: 2},
		{FieldSelector: "metadata.name=node-3"},
		{FieldSelector: "metadata.name!=node-3", Limit: 3},
		{FieldSelector: "spec.unschedulable=true"},
		{FieldSelector: "metadata.name=node-3,spec.unschedulable=true"},
		{FieldSelector: "metadata.name=node-3,metadata.name=node-4"},
	} {
		cases["list/selected "+selector.LabelSelector+selector.FieldSelector] = func(ctx context.Context, t *target) any {
			mark := t.writer.create(ctx, "a-1", nil)
			list, err := t.dynamic().List(ctx, selector)
			return chunk(list, err, mark)
		}
	}
	// The second chunk has the revision of the first, whatever is written between the requests.
	cases["list/chunks"] = func(ctx context.Context, t *target) any {
		t.writer.create(ctx, "a-1", nil)
		t.writer.create(ctx, "a-2", nil)
		t.writer.create(ctx, "a-3", nil)
		nodes := t.dynamic()
		first := must(nodes.List(ctx, metav1.ListOptions{Limit: 1}))
		t.writer.remove(ctx, "a-2")
		t.writer.create(ctx, "a-4", nil)
		mark := first.GetResourceVersion()
		second := must(nodes.List(ctx, metav1.ListOptions{Limit: 2, Continue: first.GetContinue()}))
		third := must(nodes.List(ctx, metav1.ListOptions{Limit: 500, Continue: second.GetContinue()}))
		whole := must(nodes.List(ctx, metav1.ListOptions{}))
		return []any{snapshot(first, nil, mark), snapshot(second, nil, mark), snapshot(third, nil, mark), snapshot(whole, nil, mark)}
	}
	cases["list/continued with no limit"] = func(ctx context.Context, t *target) any {
		first := must(t.dynamic().List(ctx, metav1.ListOptions{Limit: 2}))
		rest, err := t.dynamic().List(ctx, metav1.ListOptions{Continue: first.GetContinue()})
		return snapshot(rest, err, first.GetResourceVersion())
	}
	cases["list/continued with another selector"] = func(ctx context.Context, t *target) any {
		first := must(t.dynamic().List(ctx, metav1.ListOptions{Limit: 2}))
		rest, err := t.dynamic().List(ctx, metav1.ListOptions{Continue: first.GetContinue(), LabelSelector: "kubernetes.io/hostname!=node-5"})
		return snapshot(rest, err, first.GetResourceVersion())
	}
	// The error for an expired token contains a new token, which continues the list at the current revision.
	cases["list/continued too late"] = func(ctx context.Context, t *target) any {
		mark := t.writer.create(ctx, "a-1", nil)
		path := "?limit=2&continue=" + tokenOf(1, "node-3\x00")
		refused := t.get(ctx, path, "application/json")
		var status metav1.Status
		check(json.Unmarshal(refused.body, &status))
		rest, err := t.dynamic().List(ctx, metav1.ListOptions{Limit: 2, Continue: status.Continue})
		seen := []any{statusIn(refused.body), chunk(rest, err, mark)}
		if err == nil {
			rest, err = t.dynamic().List(ctx, metav1.ListOptions{Limit: 2, Continue: rest.GetContinue()})
			seen = append(seen, chunk(rest, err, mark))
		}
		return seen
	}
	cases["list/pager"] = func(ctx context.Context, t *target) any {
		options := []string{}
		pages := pager.New(func(ctx context.Context, asked metav1.ListOptions) (runtime.Object, error) {
			options = append(options, fmt.Sprintf("limit=%d continue=%v", asked.Limit, asked.Continue != ""))
			return t.dynamic().List(ctx, asked)
		})
		pages.PageSize = 3
		list, paged, err := pages.List(ctx, metav1.ListOptions{})
		check(err)
		return map[string]any{"asked": options, "paged": paged, "size": meta.LenList(list)}
	}
	// If a list expires between chunks, client-go reads the whole list again.
	cases["list/pager too late"] = func(ctx context.Context, t *target) any {
		refusals := []any{}
		pages := pager.New(func(ctx context.Context, asked metav1.ListOptions) (runtime.Object, error) {
			if asked.Continue != "" {
				asked.Continue = tokenOf(1, "node-3\x00")
			}
			list, err := t.dynamic().List(ctx, asked)
			refusals = append(refusals, refusal(err))
			return list, err
		})
		pages.PageSize = 3
		list, paged, err := pages.List(ctx, metav1.ListOptions{})
		check(err)
		return map[string]any{"responses": refusals, "paged": paged, "size": meta.LenList(list)}
	}

	for _, options := range []metav1.ListOptions{
		{},
		{ResourceVersion: "0"},
		{ResourceVersion: "0", Limit: 2},
		{ResourceVersion: "0", Limit: 2, ResourceVersionMatch: "NotOlderThan"},
		{ResourceVersion: "N"},
		{ResourceVersion: "N", Limit: 2},
		{ResourceVersion: "N", ResourceVersionMatch: "NotOlderThan"},
		{ResourceVersion: "N", ResourceVersionMatch: "NotOlderThan", Limit: 2},
		{ResourceVersion: "N", ResourceVersionMatch: "Exact"},
		{ResourceVersion: "N", ResourceVersionMatch: "Exact", Limit: 2},
		{ResourceVersion: "1"},
		{ResourceVersion: "1", Limit: 2},
		{ResourceVersion: "1", ResourceVersionMatch: "NotOlderThan"},
		{ResourceVersion: "1", ResourceVersionMatch: "Exact"},
	} {
		name := fmt.Sprintf("version/list %s %s limit=%d", options.ResourceVersion, options.ResourceVersionMatch, options.Limit)
		cases[name] = func(ctx context.Context, t *target) any {
			mark := t.writer.create(ctx, "a-1", nil)
			nodes := t.dynamic()
			t.writer.create(ctx, "a-2", nil)
			if options.ResourceVersion == "0" || options.ResourceVersion == "1" || options.ResourceVersionMatch == "NotOlderThan" {
				t.settle(ctx)
			}
			asked := options
			if asked.ResourceVersion == "N" {
				asked.ResourceVersion = mark
			}
			list, err := nodes.List(ctx, asked)
			if asked.ResourceVersion != "" && asked.ResourceVersion != "0" && asked.ResourceVersionMatch == "" && asked.Limit == 0 && err == nil {
				return since(list.GetResourceVersion(), mark) != "earlier"
			}
			if asked.ResourceVersionMatch == "Exact" || asked.ResourceVersion == mark && asked.Limit > 0 && asked.ResourceVersionMatch == "" {
				return snapshot(list, err, mark)
			}
			return chunk(list, err, mark)
		}
	}
	// This request does not use client-go, which would retry repeatedly.
	for _, suffix := range []string{"?resourceVersion=1000000000", "?resourceVersion=1000000000&resourceVersionMatch=Exact", "/node-3?resourceVersion=1000000000",
		"?continue=" + tokenOf(1_000_000_000, "a")} {
		cases["ahead/"+suffix] = func(ctx context.Context, t *target) any {
			found := t.get(ctx, suffix, "application/json")
			return []any{found.status, found.header.Get("Retry-After"), statusIn(found.body)}
		}
	}
	for _, version := range []string{"", "0", "N", "x"} {
		cases["version/get "+version] = func(ctx context.Context, t *target) any {
			mark := t.writer.create(ctx, "a-1", nil)
			nodes := t.dynamic()
			t.settle(ctx)
			asked := version
			if version == "N" {
				asked = mark
			}
			node, err := nodes.Get(ctx, "a-1", metav1.GetOptions{ResourceVersion: asked})
			if err != nil {
				return refusal(err)
			}
			return since(node.GetResourceVersion(), mark)
		}
	}
	// Every request for the latest objects returns a write that has just been made.
	cases["version/newest"] = func(ctx context.Context, t *target) any {
		seen := []string{}
		for attempt := range 5 {
			name := fmt.Sprintf("a-%d", attempt)
			mark := t.writer.create(ctx, name, map[string]any{"case": "newest"})
			one := must(t.dynamic().Get(ctx, name, metav1.GetOptions{}))
			list := must(t.dynamic().List(ctx, metav1.ListOptions{LabelSelector: "case=newest"}))
			changed := t.writer.label(ctx, name, `"newest"`)
			again := must(t.dynamic().Get(ctx, name, metav1.GetOptions{}))
			seen = append(seen, since(one.GetResourceVersion(), mark)+" "+names(list)+" "+since(again.GetResourceVersion(), changed))
			t.writer.remove(ctx, name)
			_, err := t.dynamic().Get(ctx, name, metav1.GetOptions{})
			seen = append(seen, fmt.Sprint(err))
		}
		return seen
	}

	cases["get/dynamic"] = func(ctx context.Context, t *target) any {
		node := must(t.dynamic().Get(ctx, "node-3", metav1.GetOptions{}))
		node.SetManagedFields(nil)
		return node
	}
	cases["get/metadata"] = func(ctx context.Context, t *target) any {
		node := must(t.metadata().Get(ctx, "node-3", metav1.GetOptions{}))
		node.SetManagedFields(nil)
		return node
	}
	cases["get/typed"] = func(ctx context.Context, t *target) any {
		client, codec := t.typed()
		node := &corev1.Node{}
		check(client.Get().Resource("nodes").Name("node-3").VersionedParams(&metav1.GetOptions{}, codec).Do(ctx).Into(node))
		return digest(node)
	}
	cases["get/managedFields"] = func(ctx context.Context, t *target) any {
		return len(must(t.dynamic().Get(ctx, "node-3", metav1.GetOptions{})).GetManagedFields()) > 0
	}
	for _, name := range []string{"nobody", "No_Name", "a b", "node-3/nothing", "node-3/status"} {
		cases["get/"+name] = func(ctx context.Context, t *target) any {
			found := t.get(ctx, "/"+strings.ReplaceAll(name, " ", "%20"), "application/json")
			return []any{found.status, statusIn(found.body)}
		}
	}

	for _, query := range []string{
		"limit=x", "limit=", "limit=1.5", "limit=-1", "limit=9223372036854775807", "limit=9223372036854775808",
		"timeoutSeconds=x", "resourceVersion=x", "resourceVersion=-1", "resourceVersion=18446744073709551616",
		"resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Best",
		"resourceVersion=1&resourceVersionMatch=Best", "resourceVersion=0&resourceVersionMatch=Exact",
		"resourceVersion=1&resourceVersionMatch=Exact&continue=x", "sendInitialEvents=true", "sendInitialEvents=false",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1", "allowWatchBookmarks=true",
		"continue=x", "continue=" + tokenOf(0, "a"), "continue=" + tokenOf(1, ""), "continue=" + tokenOf(1, "../a"),
		"resourceVersion=1&continue=" + tokenOf(1, "a"), "resourceVersion=0&continue=" + tokenOf(-1, "node-5\x00"),
		"labelSelector=a%3Db%3Dc", "labelSelector=%24", "labelSelector=a%20in", "labelSelector=a%20in%20()", "labelSelector=,",
		"labelSelector=a%3Ex", "fieldSelector=nothing", "fieldSelector=nothing%3Dx", "fieldSelector=metadata.namespace%3Dx",
		"fieldSelector=spec.podCIDR%3Dx", "timeout=x", "timeout=1", "timeout=-1s", "timeout=30s", "pretty=x", "nothing=x",
		"watch=false", "dryRun=All",
		"watch=true&timeoutSeconds=x", "watch=true&limit=x", "watch=true&timeoutSeconds=1&continue=x",
		"watch=true&timeoutSeconds=1&resourceVersion=x",
		"watch=true&timeoutSeconds=1&resourceVersionMatch=Exact", "watch=true&timeoutSeconds=1&resourceVersionMatch=NotOlderThan",
		"watch=true&timeoutSeconds=1&sendInitialEvents=true",
		"watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=Exact",
		"watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
		"watch=true&timeoutSeconds=1&labelSelector=a%3Db%3Dc", "watch=true&timeoutSeconds=1&fieldSelector=nothing%3Dx",
	} {
		cases["query/"+must(url.QueryUnescape(query))] = func(ctx context.Context, t *target) any {
			found := t.get(ctx, "?"+query, "application/json")
			return []any{fmt.Sprint(found.status, " ", found.header.Get("Content-Type"), " ", found.header.Get("Retry-After")), statusIn(found.body)}
		}
	}
}
