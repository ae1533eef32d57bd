package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

var (
	coreVersion = schema.GroupVersion{Version: "v1"}
	ourVersion  = schema.GroupVersion{Group: "resources.platform.io", Version: "v1alpha3"}
)

// target is a collection of nodes with its address.
type target struct {
	name   string
	config *rest.Config
	gv     schema.GroupVersion
	writer *writer
	// own is the name of a node that only this case uses, and only at this target.
	own string
}

func (t *target) gvr() schema.GroupVersionResource { return t.gv.WithResource("nodes") }

func (t *target) path() string {
	if t.gv.Group == "" {
		return "/api/" + t.gv.Version + "/nodes"
	}
	return "/apis/" + t.gv.String() + "/nodes"
}

func (t *target) dynamic() dynamic.ResourceInterface {
	return must(dynamic.NewForConfig(t.config)).Resource(t.gvr())
}

func (t *target) metadata() metadata.ResourceInterface {
	return must(metadata.NewForConfig(t.config)).Resource(t.gvr())
}

// scheme maps the Go type of the core nodes to the target's group.
func (t *target) scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(t.gv, &corev1.Node{}, &corev1.NodeList{})
	metav1.AddToGroupVersion(scheme, t.gv)
	return scheme
}

// typed returns a client with Go types, which prefers protobuf like generated clients.
func (t *target) typed() (rest.Interface, runtime.ParameterCodec) {
	config, scheme := rest.CopyConfig(t.config), t.scheme()
	config.GroupVersion = &t.gv
	config.APIPath = "/apis"
	if t.gv.Group == "" {
		config.APIPath = "/api"
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return must(rest.RESTClientFor(config)), runtime.NewParameterCodec(scheme)
}

// settle waits until every replica has seen all writes: each list is at the latest revision, and enough lists are read
// to reach every replica behind a Service.
func (t *target) settle(ctx context.Context) {
	for range 12 {
		must(t.dynamic().List(ctx, metav1.ListOptions{Limit: 1}))
	}
}

// reply is the response to a plain request.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// get sends a request with the query appended to the collection's path.
func (t *target) get(ctx context.Context, suffix, accept string) reply {
	return t.do(ctx, http.MethodGet, suffix, accept)
}

func (t *target) do(ctx context.Context, method, suffix, accept string) reply {
	base, _, err := rest.DefaultServerUrlFor(t.config)
	check(err)
	request := must(http.NewRequestWithContext(ctx, method, base.String()+t.path()+suffix, nil))
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	response := must(must(rest.HTTPClientFor(t.config)).Do(request))
	defer response.Body.Close()
	return reply{response.StatusCode, response.Header, must(io.ReadAll(response.Body))}
}

// writer changes the core nodes and restores them.
type writer struct {
	nodes   dynamic.ResourceInterface
	created map[string]bool
}

func newWriter(config *rest.Config) *writer {
	return &writer{must(dynamic.NewForConfig(config)).Resource(coreVersion.WithResource("nodes")), map[string]bool{}}
}

// create creates a node that nothing else writes to, and returns its resourceVersion.
func (w *writer) create(ctx context.Context, name string, labels map[string]any) string {
	w.created[name] = true
	node := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata":   map[string]any{"name": name, "labels": labels},
	}}
	return must(w.nodes.Create(ctx, node, metav1.CreateOptions{})).GetResourceVersion()
}

func (w *writer) patch(ctx context.Context, name, patch string) string {
	return must(w.nodes.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})).GetResourceVersion()
}

func (w *writer) label(ctx context.Context, name, value string) string {
	return w.patch(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{"case":%s}}}`, value))
}

func (w *writer) remove(ctx context.Context, name string) {
	check(w.nodes.Delete(ctx, name, metav1.DeleteOptions{}))
	delete(w.created, name)
}

// cleanUp deletes the objects that a case has created and not deleted.
func (w *writer) cleanUp() {
	for name := range w.created {
		if err := w.nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			panic(err)
		}
		delete(w.created, name)
	}
}

// current returns the cluster's resourceVersion.
func (w *writer) current(ctx context.Context) string {
	return must(w.nodes.List(ctx, metav1.ListOptions{Limit: 1})).GetResourceVersion()
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// refusal describes an error as the client libraries report it; nil if there is none.
func refusal(err error) any {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	return statusOf(status.Status())
}

func statusOf(status metav1.Status) any {
	seen := map[string]any{"code": status.Code, "reason": status.Reason, "message": status.Message}
	if details := status.Details; details != nil && (details.Name != "" || details.Kind != "") {
		seen["name"], seen["group"], seen["kind"] = details.Name, details.Group, details.Kind
	}
	if details := status.Details; details != nil && len(details.Causes) > 0 {
		seen["causes"] = details.Causes
	}
	if details := status.Details; details != nil && details.RetryAfterSeconds != 0 {
		seen["retryAfterSeconds"] = details.RetryAfterSeconds
	}
	if status.Continue != "" {
		seen["continue"] = true
	}
	return seen
}

// statusIn parses a Status from a body; other bodies are described by their kind.
func statusIn(body []byte) any {
	var head metav1.TypeMeta
	if err := json.Unmarshal(body, &head); err != nil {
		switch {
		case len(body) == 0:
			return "nothing"
		case bytes.HasPrefix(body, []byte("k8s\x00")):
			return "protobuf"
		case bytes.HasPrefix(body, []byte("apiVersion: ")), bytes.HasPrefix(body, []byte("kind: ")):
			return "YAML"
		}
		return fmt.Sprintf("%.8q", body)
	}
	if head.Kind != "Status" {
		return head.Kind
	}
	var status metav1.Status
	check(json.Unmarshal(body, &status))
	return statusOf(status)
}

// since describes the position of a resourceVersion relative to another.
func since(version, mark string) string {
	a, b := must(strconv.ParseUint(version, 10, 64)), must(strconv.ParseUint(mark, 10, 64))
	switch {
	case a == b:
		return "equal"
	case a > b:
		return "later"
	default:
		return "earlier"
	}
}
