// Cases for clients of Kubernetes, written with client-go and controller-runtime in the usual way. Each case runs
// against core nodes, at kube-apiserver and through the gateway, and against nodes.resources.platform.io, through the
// aggregator and at the port of platform-apiserver. For each case and target, the program prints one JSON line. The
// results of one case can be compared across targets.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// line is one line of output.
type line struct {
	Case   string `json:"case"`
	Target string `json:"target"`
	Result any    `json:"result"`
}

// cases maps names to cases. A case that writes restores the cluster.
var cases = map[string]func(context.Context, *target) any{}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: cases KUBECONFIG KUBECONFIG_OF_OUR_GATEWAY KUBECONFIG_OF_OUR_PORT PATTERN")
		os.Exit(2)
	}
	if err := run(context.Background(), [3]string(os.Args[1:4]), regexp.MustCompile(os.Args[4])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfigs [3]string, wanted *regexp.Regexp) error {
	var configs [3]*rest.Config
	for index, kubeconfig := range kubeconfigs {
		config, err := configOf(kubeconfig)
		if err != nil {
			return err
		}
		configs[index] = config
	}
	cluster, gateway, direct := configs[0], configs[1], configs[2]
	targets := []*target{
		{name: "core", config: cluster, gv: coreVersion},
		{name: "gateway", config: gateway, gv: coreVersion},
		{name: "aggregated", config: cluster, gv: ourVersion},
		{name: "direct", config: direct, gv: ourVersion},
	}
	names := make([]string, 0, len(cases))
	for name := range cases {
		if wanted.MatchString(name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	output := json.NewEncoder(os.Stdout)
	var writing sync.Mutex
	places := make(chan struct{}, 24)
	var running sync.WaitGroup
	for number, name := range names {
		for _, target := range targets {
			// Each target has its own node and its own list of objects to clean up.
			target := *target
			target.own = fmt.Sprintf("own-%d-%s", number, target.name)
			target.writer = newWriter(cluster)
			places <- struct{}{}
			running.Go(func() {
				defer func() { <-places }()
				seen := line{name, target.name, result(ctx, name, &target)}
				writing.Lock()
				defer writing.Unlock()
				check(output.Encode(seen))
			})
			if !isolated.MatchString(name) {
				running.Wait()
			}
		}
		if !concurrent.MatchString(name) {
			running.Wait()
		}
	}
	running.Wait()
	return nil
}

var (
	// isolated matches the cases that use only the node of their target, so that all targets can run in parallel.
	isolated = regexp.MustCompile(`^(watch|ahead|controller-runtime|informer)/`)
	// concurrent matches the isolated cases that change no global settings, so that they can run in parallel.
	concurrent = regexp.MustCompile(`^(watch|ahead)/`)
)

// result runs one case; its failure is part of the result and does not affect other targets.
func result(ctx context.Context, name string, target *target) (seen any) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	defer target.writer.cleanUp()
	defer func() {
		if problem := recover(); problem != nil {
			seen = map[string]any{"broken": fmt.Sprint(problem), "target": target.name}
		}
	}()
	return target.comparable(cases[name](ctx, target))
}

func configOf(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "cases"
	config.QPS = -1
	return config, nil
}

var versions = regexp.MustCompile(`current: \d+|\(\d+\)`)

// comparable removes inherent differences: the name of the group, resource versions, and the case's own node.
func (t *target) comparable(seen any) any {
	text, err := json.Marshal(seen)
	if err != nil {
		panic(err)
	}
	named := strings.NewReplacer(
		"nodes."+ourVersion.Group, "nodes",
		"Node."+ourVersion.Group, "Node",
		t.own, "own",
		ourVersion.String(), coreVersion.String(),
		`"`+ourVersion.Group+`"`, `""`,
	).Replace(string(text))
	named = versions.ReplaceAllStringFunc(named, func(found string) string {
		return regexp.MustCompile(`\d+`).ReplaceAllString(found, "N")
	})
	return json.RawMessage(named)
}
