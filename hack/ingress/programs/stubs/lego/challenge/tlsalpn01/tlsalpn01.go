package tlsalpn01

import (
	"errors"
	"time"
)

const ACMETLS1Protocol = "acme-tls/1"

type ChallengeOption struct{}

func SetDelay(time.Duration) (option ChallengeOption) { return }

func ChallengeBlocks(domain, keyAuth string) (certificate, key []byte, err error) {
	return nil, nil, errors.ErrUnsupported
}
