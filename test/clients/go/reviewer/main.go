// A component with delegated authentication. `reviewer KUBECONFIG [AUDIENCE…]` reads a token from standard input, and
// creates a TokenReview with client-go. The program prints the media types of the request and the status of the review
// as one JSON object. It sends protobuf, the default of client-go, unless CONTENT_TYPE names another media type.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// seen is the output.
type seen struct {
	ContentType string                             `json:"contentType"`
	Accept      string                             `json:"accept"`
	Status      authenticationv1.TokenReviewStatus `json:"status"`
}

// recorder records the media types of a request.
type recorder struct {
	http.RoundTripper
	seen *seen
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.seen.ContentType, r.seen.Accept = request.Header.Get("Content-Type"), request.Header.Get("Accept")
	return r.RoundTripper.RoundTrip(request)
}

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig string, audiences []string) error {
	token, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	var found seen
	config.ContentType = os.Getenv("CONTENT_TYPE")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, &found} })
	client, err := authentication.NewForConfig(config)
	if err != nil {
		return err
	}
	review, err := client.TokenReviews().Create(context.Background(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: string(token), Audiences: audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	found.Status = review.Status
	return json.NewEncoder(os.Stdout).Encode(found)
}
