package secret

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	minSecret  = 16
	maxSecret  = 1024
	maxSecrets = 8
)

// parse returns the secrets of a file, without repetitions, in order.
func parse(content []byte) ([][]byte, error) {
	var secrets [][]byte
	var faults []error
	number := 0
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#' || contains(secrets, line):
		case len(line) < minSecret || len(line) > maxSecret:
			faults = append(faults, fmt.Errorf("line %d: a secret of %d bytes, must be of %d to %d", number, len(line), minSecret, maxSecret))
		default:
			secrets = append(secrets, line)
		}
	}
	if len(secrets) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("there is no secret in it"))
	}
	if len(secrets) > maxSecrets {
		faults = append(faults, fmt.Errorf("%d secrets, must be at most %d", len(secrets), maxSecrets))
	}
	return secrets, errors.Join(faults...)
}

func contains(secrets [][]byte, s []byte) bool {
	for _, known := range secrets {
		if bytes.Equal(known, s) {
			return true
		}
	}
	return false
}

// What is derived; a label is for ever, or nodes of two versions would not
// understand each other.
const (
	gossipLabel   = "kvca gossip"
	identityLabel = "kvca link identity"
)

func gossipKey(secret []byte) ([]byte, error) { return derive(secret, gossipLabel, 32) }

func identityKey(secret []byte) (ed25519.PrivateKey, error) {
	seed, err := derive(secret, identityLabel, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func derive(secret []byte, label string, size int) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, label, size)
	if err != nil {
		return nil, fmt.Errorf("derive %s: %w", label, err)
	}
	return key, nil
}

// keyID names a derived key in logs.
func keyID(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:4])
}
