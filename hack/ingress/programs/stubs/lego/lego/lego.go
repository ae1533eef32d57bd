package lego

import (
	"crypto/x509"
	"errors"
	"net/http"
	"time"

	"github.com/go-acme/lego/v5/certificate"
	"github.com/go-acme/lego/v5/challenge"
	"github.com/go-acme/lego/v5/challenge/dns01"
	"github.com/go-acme/lego/v5/challenge/http01"
	"github.com/go-acme/lego/v5/challenge/tlsalpn01"
	"github.com/go-acme/lego/v5/registration"
)

const DirectoryURLLetsEncrypt = ""

type Config struct {
	CADirURL, UserAgent string
	HTTPClient          *http.Client
	Certificate         struct{ Timeout time.Duration }
}

func NewConfig(any) *Config { return &Config{} }

type Solvers struct{}

func (Solvers) SetDNS01Provider(challenge.Provider, ...dns01.ChallengeOption) error {
	return errors.ErrUnsupported
}

func (Solvers) SetHTTP01Provider(challenge.Provider, ...http01.ChallengeOption) error {
	return errors.ErrUnsupported
}

func (Solvers) SetTLSALPN01Provider(challenge.Provider, ...tlsalpn01.ChallengeOption) error {
	return errors.ErrUnsupported
}

type Client struct {
	Certificate  *certificate.Certifier
	Challenge    Solvers
	Registration *registration.Registrar
}

func NewClient(*Config) (*Client, error) { return nil, errors.ErrUnsupported }

func CreateCertPool([]string, bool) (*x509.CertPool, error) { return nil, errors.ErrUnsupported }
