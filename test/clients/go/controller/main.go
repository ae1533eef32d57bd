// A typical controller with leader election. `controller KUBECONFIG NAMESPACE IDENTITY` copies the value of each
// ConfigMap with the label `copied` into an annotation of the same name, and records IDENTITY in the annotation `by`.
// The program prints a line when it becomes the leader.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const label = "copied"

type reconciler struct {
	client.Client
	identity string
}

func (r reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var found corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if found.Labels[label] == "" || found.Annotations[label] == found.Data["value"] {
		return ctrl.Result{}, nil
	}
	changed := found.DeepCopy()
	changed.Annotations = map[string]string{label: found.Data["value"], "by": r.identity}
	return ctrl.Result{}, r.Patch(ctx, changed, client.MergeFrom(&found))
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace, identity string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "controller-runtime",
		LeaderElectionNamespace: namespace,
	})
	if err != nil {
		return err
	}
	go func() {
		<-manager.Elected()
		fmt.Println("leads")
	}()
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(reconciler{manager.GetClient(), identity})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
