package secret

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
)

// Source is the cluster secret, as its file says.
type Source struct {
	watch *watch
	log   *slog.Logger
	keys  atomic.Pointer[keys]
}

// keys are what follows from one content of the file. They don't change.
type keys struct {
	gossip [][]byte // the first is used for sending
	config *tls.Config
	ids    []string // of the identities
}

// Open reads a secret file. Whoever can read it is a node of the cluster, so it
// warns where others than its owner can.
func Open(path string, log *slog.Logger) (*Source, error) {
	s := &Source{watch: newWatch(log, path), log: orDiscard(log)}
	contents, err := s.watch.first()
	if err != nil {
		return nil, fmt.Errorf("open cluster secret: %w", err)
	}
	k, err := newKeys(contents[0])
	if err != nil {
		return nil, fmt.Errorf("read cluster secret %s: %w", path, err)
	}
	s.keys.Store(k)
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		s.log.Warn("cluster secret can be read by others than its owner",
			slog.String("file", path), slog.String("mode", info.Mode().Perm().String()))
	}
	s.log.Info("cluster secret", slog.Any("keys", k.ids))
	return s, nil
}

// Run looks at the file every two seconds until ctx ends. onChange is called
// after new secrets have come into force; it may be nil.
func (s *Source) Run(ctx context.Context, onChange func()) {
	s.watch.run(ctx, func(contents [][]byte) error {
		k, err := newKeys(contents[0])
		if err != nil {
			return err
		}
		s.keys.Store(k)
		s.log.Info("cluster secret changed", slog.Any("keys", k.ids))
		if onChange != nil {
			onChange()
		}
		return nil
	})
}

// GossipKeys are AES-256 keys: primary encrypts, and all, among which it is the
// first, decrypt.
func (s *Source) GossipKeys() (primary []byte, all [][]byte) {
	k := s.keys.Load()
	return k.gossip[0], k.gossip
}

// Server is how to accept a connection now. It must be asked for again for the next one.
func (s *Source) Server() *tls.Config { return s.keys.Load().config }

// Client is how to make a connection now. It must be asked for again for the next one.
func (s *Source) Client() *tls.Config { return s.keys.Load().config }

// newKeys derives all that follows from a file's content.
func newKeys(content []byte) (*keys, error) {
	secrets, err := parse(content)
	if err != nil {
		return nil, err
	}
	k := &keys{}
	var own tls.Certificate
	var accepted []ed25519.PublicKey
	for i, s := range secrets {
		gossip, err := gossipKey(s)
		if err != nil {
			return nil, err
		}
		identity, err := identityKey(s)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if own, err = certificate(identity); err != nil {
				return nil, err
			}
		}
		public := identity.Public().(ed25519.PublicKey)
		k.gossip = append(k.gossip, gossip)
		k.ids = append(k.ids, keyID(public))
		accepted = append(accepted, public)
	}
	k.config = baseConfig(&own, acceptKeys(accepted))
	return k, nil
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
