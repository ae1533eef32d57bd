package certificate

import (
	"context"
	"errors"

	"github.com/go-acme/lego/v5/certcrypto"
)

type Resource struct {
	ID                      string
	Domains                 []string
	PrivateKey, Certificate []byte
}

type ObtainRequest struct {
	Domains, EmailAddresses  []string
	Bundle, EnableCommonName bool
	Profile, PreferredChain  string
	KeyType                  certcrypto.KeyType
}

type RenewOptions struct {
	EmailAddresses           []string
	Bundle, EnableCommonName bool
	Profile, PreferredChain  string
}

type Certifier struct{}

func (*Certifier) Obtain(context.Context, ObtainRequest) (*Resource, error) {
	return nil, errors.ErrUnsupported
}

func (*Certifier) Renew(context.Context, Resource, *RenewOptions) (*Resource, error) {
	return nil, errors.ErrUnsupported
}
