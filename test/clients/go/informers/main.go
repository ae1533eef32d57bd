// A typical client-go program with two informers for nodes.resources.platform.io: one uses the dynamic client, and the
// other reads only metadata. The program prints each event as a line of JSON until its standard input ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var nodes = schema.GroupVersionResource{Group: "resources.platform.io", Version: "v1alpha3", Resource: "nodes"}

// seen is one line of output.
type seen struct {
	Informer        string   `json:"informer"`
	Event           string   `json:"event"` // synced, add, update, delete, error
	Name            string   `json:"name,omitempty"`
	ResourceVersion string   `json:"resourceVersion,omitempty"`
	Labels          []string `json:"labels,omitempty"`
	Names           []string `json:"names,omitempty"` // for synced: everything in the store
	Error           string   `json:"error,omitempty"`
}

var output = struct {
	sync.Mutex
	*json.Encoder
}{Encoder: json.NewEncoder(os.Stdout)}

func tell(line seen) {
	output.Lock()
	defer output.Unlock()
	if err := output.Encode(line); err != nil {
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: informers KUBECONFIG < /dev/tty")
		os.Exit(2)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "informers"
	informers, err := informersOf(config)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for name, informer := range informers {
		if err := follow(name, informer); err != nil {
			return err
		}
		running.Go(func() { informer.RunWithContext(ctx) })
		running.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				tell(seen{Informer: name, Event: "synced", Names: informer.GetStore().ListKeys()})
			}
		})
	}
	running.Wait()
	return nil
}

func informersOf(config *rest.Config) (map[string]cache.SharedIndexInformer, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadatas, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	const resync = time.Duration(0)
	return map[string]cache.SharedIndexInformer{
		"dynamic":  dynamicinformer.NewDynamicSharedInformerFactory(objects, resync).ForResource(nodes).Informer(),
		"metadata": metadatainformer.NewSharedInformerFactory(metadatas, resync).ForResource(nodes).Informer(),
	}, nil
}

func follow(name string, informer cache.SharedIndexInformer) error {
	err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		tell(seen{Informer: name, Event: "error", Error: err.Error()})
	})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(about(name, "add", object)) },
		UpdateFunc: func(_, object any) { tell(about(name, "update", object)) },
		DeleteFunc: func(object any) { tell(about(name, "delete", object)) },
	})
	return err
}

func about(informer, event string, object any) seen {
	// client-go wraps objects that were deleted while the watch was interrupted.
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	line := seen{Informer: informer, Event: event}
	accessor, err := meta.Accessor(object)
	if err != nil {
		line.Error = err.Error()
		return line
	}
	line.Name, line.ResourceVersion = accessor.GetName(), accessor.GetResourceVersion()
	for key, value := range accessor.GetLabels() {
		line.Labels = append(line.Labels, key+"="+value)
	}
	return line
}
