package main

import (
	"context"
	"net/http"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// streaming reports whether reflectors list by a watch.
var streaming atomic.Bool

type gates struct{ features.Gates }

func (g gates) Enabled(feature features.Feature) bool {
	if feature == features.WatchListClient {
		return streaming.Load()
	}
	return g.Gates.Enabled(feature)
}

// requests records the requests of a client, without the parts that differ between runs.
type requests struct {
	sync.Mutex
	seen []string
}

func (r *requests) record(config *rest.Config) *rest.Config {
	recorded := rest.CopyConfig(config)
	recorded.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err != nil || !strings.HasSuffix(request.URL.Path, "/nodes") {
				return response, err
			}
			sent := []string{}
			for key, values := range request.URL.Query() {
				switch {
				case key == "timeoutSeconds" || key == "timeout":
					continue
				case key == "resourceVersion" && values[0] != "0":
					values = []string{"N"}
				}
				sent = append(sent, key+"="+values[0])
			}
			sort.Strings(sent)
			r.Lock()
			defer r.Unlock()
			r.seen = append(r.seen, strings.Join(sent, "&")+" "+response.Status)
			return response, nil
		})
	})
	return recorded
}

func (r *requests) all() []string {
	r.Lock()
	defer r.Unlock()
	return append([]string{}, r.seen...)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// recorder keeps an informer's events for one node.
type recorder struct {
	sync.Mutex
	of     string
	events []string
}

func (s *recorder) handler() clientcache.ResourceEventHandler {
	tell := func(event string, object any) {
		accessor, err := meta.Accessor(object)
		if err != nil || accessor.GetName() != s.of {
			return
		}
		s.Lock()
		defer s.Unlock()
		text := event + " " + accessor.GetLabels()["case"]
		if len(s.events) == 0 || s.events[len(s.events)-1] != text {
			s.events = append(s.events, text)
		}
	}
	return clientcache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("add", object) },
		UpdateFunc: func(_, object any) { tell("update", object) },
		DeleteFunc: func(object any) { tell("delete", object) },
	}
}

// until waits for the last event.
func (s *recorder) until(ctx context.Context, last string) []string {
	for {
		s.Lock()
		recorded := append([]string{}, s.events...)
		s.Unlock()
		if ctx.Err() != nil || len(recorded) > 0 && strings.HasPrefix(recorded[len(recorded)-1], last) {
			return recorded
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// followed creates, changes and deletes a node while an informer watches it.
func followed(ctx context.Context, t *target, events *recorder) []string {
	t.writer.create(ctx, t.own, map[string]any{"case": "one"})
	events.until(ctx, "add")
	t.writer.label(ctx, t.own, `"two"`)
	events.until(ctx, "update two")
	t.writer.remove(ctx, t.own)
	return events.until(ctx, "delete")
}

func init() {
	features.ReplaceFeatureGates(gates{features.FeatureGates()})

	for _, stream := range []bool{true, false} {
		by := " by lists"
		if stream {
			by = " by streaming lists"
		}
		for form, informerOf := range map[string]func(*rest.Config, *target) clientcache.SharedIndexInformer{
			"dynamic": func(config *rest.Config, t *target) clientcache.SharedIndexInformer {
				return dynamicinformer.NewDynamicSharedInformerFactory(must(dynamic.NewForConfig(config)), 0).ForResource(t.gvr()).Informer()
			},
			"metadata": func(config *rest.Config, t *target) clientcache.SharedIndexInformer {
				return metadatainformer.NewSharedInformerFactory(must(metadata.NewForConfig(config)), 0).ForResource(t.gvr()).Informer()
			},
		} {
			cases["informer/"+form+by] = func(ctx context.Context, t *target) any {
				ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
				defer cancel()
				streaming.Store(stream)
				sent, events := &requests{}, &recorder{of: t.own}
				informer := informerOf(sent.record(t.config), t)
				problems := []string{}
				check(informer.SetWatchErrorHandler(func(_ *clientcache.Reflector, err error) { problems = append(problems, err.Error()) }))
				must(informer.AddEventHandler(events.handler()))
				go informer.RunWithContext(ctx)
				clientcache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
				keys := []string{}
				for _, key := range informer.GetStore().ListKeys() {
					if strings.HasPrefix(key, "node-") {
						keys = append(keys, key)
					}
				}
				sort.Strings(keys)
				return map[string]any{"keys": keys, "events": followed(ctx, t, events), "requests": sent.all(), "problems": problems}
			}
		}

		for form, objectOf := range map[string]func(*target) (client.Object, client.ObjectList){
			"typed": func(*target) (client.Object, client.ObjectList) { return &corev1.Node{}, &corev1.NodeList{} },
			"unstructured": func(t *target) (client.Object, client.ObjectList) {
				one, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
				one.SetGroupVersionKind(t.gv.WithKind("Node"))
				list.SetGroupVersionKind(t.gv.WithKind("NodeList"))
				return one, list
			},
			"metadata": func(t *target) (client.Object, client.ObjectList) {
				one, list := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
				one.SetGroupVersionKind(t.gv.WithKind("Node"))
				list.SetGroupVersionKind(t.gv.WithKind("NodeList"))
				return one, list
			},
		} {
			cases["controller-runtime/"+form+by] = func(ctx context.Context, t *target) any {
				ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
				defer cancel()
				streaming.Store(stream)
				sent, events := &requests{}, &recorder{of: t.own}
				nodes := must(cache.New(sent.record(t.config), cache.Options{Scheme: t.scheme()}))
				one, list := objectOf(t)
				check(nodes.IndexField(ctx, one, "hostname", func(object client.Object) []string {
					return []string{object.GetLabels()["kubernetes.io/hostname"]}
				}))
				informer := must(nodes.GetInformer(ctx, one))
				must(informer.AddEventHandler(events.handler()))
				go func() { _ = nodes.Start(ctx) }()
				synced := nodes.WaitForCacheSync(ctx)
				missing := nodes.Get(ctx, client.ObjectKey{Name: "nobody"}, one)
				check(nodes.Get(ctx, client.ObjectKey{Name: "node-3"}, one))
				check(nodes.List(ctx, list, client.MatchingLabels{"kubernetes.io/os": "linux"}))
				labelled := meta.LenList(list)
				check(nodes.List(ctx, list, client.MatchingFields{"hostname": "node-5"}))
				return map[string]any{
					"synced": synced, "labelled": labelled, "indexed": meta.LenList(list), "digest": digest(one), "missing": refusal(missing),
					"events": followed(ctx, t, events), "requests": sent.all(),
				}
			}
		}
	}
}
