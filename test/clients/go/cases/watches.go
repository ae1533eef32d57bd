package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
)

// event describes one event of a watch, with the name that `marks` has for its resourceVersion.
func event(found watch.Event, marks map[string]string) string {
	if found.Type == watch.Error {
		return "ERROR " + string(must(json.Marshal(found.Object)))
	}
	node, isNode := found.Object.(interface {
		GetName() string
		GetResourceVersion() string
		GetAnnotations() map[string]string
		GetLabels() map[string]string
	})
	if !isNode {
		return fmt.Sprintf("%s %T", found.Type, found.Object)
	}
	kind := found.Object.GetObjectKind().GroupVersionKind()
	text := fmt.Sprintf("%s %s %s %s", found.Type, kind.GroupVersion(), kind.Kind, node.GetName())
	if mark, known := marks[node.GetResourceVersion()]; known && found.Type != watch.Bookmark {
		text += " of " + mark
	}
	if node.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		text += " ends the initial events"
	}
	if label := node.GetLabels()["case"]; label != "" {
		text += " labelled " + label
	}
	return text
}

// collect gathers the events of a watch until it ends or `count` have been received.
func collect(ctx context.Context, events watch.Interface, count int, marks map[string]string) []string {
	defer events.Stop()
	seen := []string{}
	for len(seen) < count {
		select {
		case <-ctx.Done():
			return append(seen, "nothing more, and no end")
		case found, open := <-events.ResultChan():
			if !open {
				return append(seen, "end")
			}
			if node, isNode := found.Object.(metav1.Object); isNode && found.Type == watch.Modified && marks[node.GetResourceVersion()] == "" {
				continue // The control plane also writes to nodes.
			}
			// The server decides how often it sends bookmarks.
			if text := event(found, marks); len(seen) == 0 || text != seen[len(seen)-1] {
				seen = append(seen, text)
			}
		}
	}
	return seen
}

type watcher interface {
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// lifecycle watches the whole lifecycle of a node with these options.
func lifecycle(ctx context.Context, t *target, client watcher, options metav1.ListOptions, count int) any {
	options.ResourceVersion = t.writer.current(ctx)
	marks := map[string]string{}
	t.writer.create(ctx, "other", nil)
	marks[t.writer.create(ctx, "case", nil)] = "the creation"
	marks[t.writer.label(ctx, "case", `"one"`)] = "the first label"
	events := must(client.Watch(ctx, options))
	marks[t.writer.label(ctx, "case", `"two"`)] = "the second label"
	marks[t.writer.patch(ctx, "case", `{"spec":{"unschedulable":true}}`)] = "the cordon"
	marks[t.writer.patch(ctx, "case", `{"spec":{"unschedulable":null}}`)] = "its end"
	marks[t.writer.label(ctx, "case", "null")] = "no label"
	marks[t.writer.label(ctx, "case", `"one"`)] = "the first label again"
	t.writer.remove(ctx, "case")
	t.writer.remove(ctx, "other")
	return collect(ctx, events, count, marks)
}

func seconds(count int64) *int64 { return &count }

func yes() *bool {
	value := true
	return &value
}

func no() *bool {
	value := false
	return &value
}

func init() {
	cases["life/dynamic"] = func(ctx context.Context, t *target) any {
		return lifecycle(ctx, t, t.dynamic(), metav1.ListOptions{}, 9)
	}
	cases["life/metadata"] = func(ctx context.Context, t *target) any {
		return lifecycle(ctx, t, t.metadata(), metav1.ListOptions{}, 9)
	}
	for selector, count := range map[string]int{"case=one": 4, "case": 7, "!case": 6, "case notin (two)": 8} {
		cases["life/"+selector] = func(ctx context.Context, t *target) any {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			return lifecycle(ctx, t, t.dynamic(), metav1.ListOptions{LabelSelector: selector}, count)
		}
	}
	for selector, count := range map[string]int{"metadata.name=case": 8, "spec.unschedulable=true": 2, "metadata.name=case,spec.unschedulable=false": 7} {
		cases["life/"+selector] = func(ctx context.Context, t *target) any {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			return lifecycle(ctx, t, t.dynamic(), metav1.ListOptions{FieldSelector: selector}, count)
		}
	}

	for name, options := range map[string]metav1.ListOptions{
		"from nothing":                           {},
		"from 0":                                 {ResourceVersion: "0"},
		"from 0 with bookmarks":                  {ResourceVersion: "0", AllowWatchBookmarks: true},
		"from N":                                 {ResourceVersion: "N"},
		"from N with bookmarks":                  {ResourceVersion: "N", AllowWatchBookmarks: true},
		"from N too short for bookmarks":         {ResourceVersion: "N", AllowWatchBookmarks: true, TimeoutSeconds: seconds(1)},
		"from 1":                                 {ResourceVersion: "1"},
		"from the future":                        {ResourceVersion: "1000000000"},
		"streaming list":                         {SendInitialEvents: yes(), AllowWatchBookmarks: true, ResourceVersionMatch: "NotOlderThan"},
		"streaming list without bookmarks":       {SendInitialEvents: yes(), ResourceVersionMatch: "NotOlderThan"},
		"streaming list from 0":                  {SendInitialEvents: yes(), AllowWatchBookmarks: true, ResourceVersionMatch: "NotOlderThan", ResourceVersion: "0"},
		"streaming list from N":                  {SendInitialEvents: yes(), AllowWatchBookmarks: true, ResourceVersionMatch: "NotOlderThan", ResourceVersion: "N"},
		"streaming list from the future":         {SendInitialEvents: yes(), AllowWatchBookmarks: true, ResourceVersionMatch: "NotOlderThan", ResourceVersion: "1000000000"},
		"no initial events":                      {SendInitialEvents: no(), ResourceVersionMatch: "NotOlderThan"},
		"no initial events from 0 and bookmarks": {SendInitialEvents: no(), ResourceVersionMatch: "NotOlderThan", ResourceVersion: "0", AllowWatchBookmarks: true},
		"no initial events from N":               {SendInitialEvents: no(), ResourceVersionMatch: "NotOlderThan", ResourceVersion: "N"},
	} {
		cases["watch/"+name] = func(ctx context.Context, t *target) any {
			marks := map[string]string{}
			version := t.writer.create(ctx, t.own, map[string]any{"case": "watched"})
			marks[version] = "the creation"
			t.settle(ctx)
			asked := options
			asked.FieldSelector = "metadata.name=" + t.own
			if asked.ResourceVersion == "N" {
				asked.ResourceVersion = version
			}
			if asked.TimeoutSeconds == nil {
				asked.TimeoutSeconds = seconds(1)
				if asked.AllowWatchBookmarks {
					asked.TimeoutSeconds = seconds(3) // kube-apiserver sends a bookmark 2 s before the end.
				}
			}
			events, err := t.dynamic().Watch(ctx, asked)
			if err != nil {
				return refusal(err)
			}
			// A bookmark reports progress of a watch, so the revision must have advanced.
			t.writer.create(ctx, "other-"+t.own, nil)
			return collect(ctx, events, 100, marks)
		}
	}
	// RetryWatcher of client-go resumes a watch after its end.
	cases["watch/retried"] = func(ctx context.Context, t *target) any {
		marks := map[string]string{}
		version := t.writer.create(ctx, t.own, nil)
		watches := 0
		client := watcherFunc(func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watches++
			options.TimeoutSeconds = seconds(1)
			options.FieldSelector = "metadata.name=" + t.own
			return t.dynamic().Watch(ctx, options)
		})
		events := must(watchtools.NewRetryWatcherWithContext(ctx, version, client))
		marks[t.writer.label(ctx, t.own, `"one"`)] = "the first label"
		seen := make(chan []string)
		go func() { seen <- collect(ctx, events, 2, marks) }()
		time.Sleep(1500 * time.Millisecond)
		t.writer.label(ctx, t.own, `"two"`)
		return []any{<-seen, watches > 1}
	}

	const meta = "g=meta.k8s.io;v=v1"
	for _, accept := range []string{
		"application/json;as=Table;" + meta,
		"application/json;as=Table;g=meta.k8s.io;v=v1beta1",
		"application/json;as=PartialObjectMetadata;" + meta,
		"application/json;stream=watch",
	} {
		for _, query := range []string{"", "&includeObject=None", "&includeObject=Object"} {
			if query != "" && !strings.Contains(accept, "Table") {
				continue
			}
			cases["watch/as "+accept+query] = func(ctx context.Context, t *target) any {
				version := t.writer.create(ctx, t.own, nil)
				t.writer.label(ctx, t.own, `"one"`)
				t.writer.remove(ctx, t.own)
				reply := t.get(ctx, "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D"+t.own+"&resourceVersion="+version+query, accept)
				seen := []any{reply.status, reply.header.Get("Content-Type")}
				lines := bufio.NewScanner(bytes.NewReader(reply.body))
				lines.Buffer(nil, 1<<20)
				for lines.Scan() {
					var frame map[string]any
					check(json.Unmarshal(lines.Bytes(), &frame))
					seen = append(seen, withoutTimes(frame))
				}
				return seen
			}
		}
	}
}

// withoutTimes removes the times, IDs and versions that differ between runs from a frame.
func withoutTimes(frame map[string]any) any {
	object, _ := frame["object"].(map[string]any)
	scrub := func(object map[string]any) {
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
			unstructured.RemoveNestedField(object, "metadata", field)
		}
	}
	scrub(object)
	rows, _ := object["rows"].([]any)
	for _, row := range rows {
		row, _ := row.(map[string]any)
		if shown, isObject := row["object"].(map[string]any); isObject {
			scrub(shown)
		}
		if cells, _ := row["cells"].([]any); len(cells) > 3 {
			cells[3] = fmt.Sprintf("%T", cells[3])
		}
	}
	return frame
}

type watcherFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

func (f watcherFunc) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, options)
}
