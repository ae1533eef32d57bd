// A receiver of OTLP with the official types. `collector HTTP_ADDRESS GRPC_ADDRESS` prints each received span as a line
// of JSON. kube-apiserver exports spans over gRPC, and platform-apiserver over HTTP.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type receiver struct {
	collector.UnimplementedTraceServiceServer
	printing sync.Mutex
}

func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.printing.Lock()
	defer r.printing.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				line, err := protojson.Marshal(span)
				if err != nil {
					return nil, err
				}
				fmt.Println(string(line))
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func (r *receiver) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var export collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &export)
	}
	if err == nil {
		_, err = r.Export(request.Context(), &export)
	}
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
	}
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(httpAddress, grpcAddress string) error {
	spans := &receiver{}
	listener, err := net.Listen("tcp", grpcAddress)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, spans)
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(listener) }()
	go func() { failed <- http.ListenAndServe(httpAddress, spans) }()
	return <-failed
}
