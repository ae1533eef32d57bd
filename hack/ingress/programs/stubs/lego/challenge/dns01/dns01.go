package dns01

import (
	"strings"
	"time"
)

type Options struct{ RecursiveNameservers []string }

type Client struct{}

func NewClient(*Options) *Client { return nil }

func SetDefaultClient(*Client) {}

type ChallengeOption struct{}

func CondOptions(bool, ...ChallengeOption) (option ChallengeOption) { return }

func DisableAuthoritativeNssPropagationRequirement() (option ChallengeOption) { return }

func DisableRecursiveNSsPropagationRequirement() (option ChallengeOption) { return }

func PropagationWait(time.Duration, bool) (option ChallengeOption) { return }

func UnFqdn(name string) string { return strings.TrimSuffix(name, ".") }
