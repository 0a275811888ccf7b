package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"kvca/state/chain"
)

// setHashKey reads the key of the block hashes: 32 hex digits, white space around
// them aside, or exactly 16 bytes. Neither the key nor a part of it is ever shown.
func setHashKey(s *settings, name string) error {
	text, err := readBounded(name, maxKeyBytes)
	if err != nil {
		return fmt.Errorf("%q %w", name, err)
	}
	key, err := chain.ParseKey(strings.TrimSpace(string(text)))
	if err != nil && len(text) == 16 {
		key, err = chain.ParseKey(hex.EncodeToString(text))
	}
	if err != nil {
		return fmt.Errorf("%q holds no key: want 32 hex digits or 16 bytes, found %d bytes", name, len(text))
	}
	s.hashKey = &key
	// Mounted secrets often are readable for all, where only one user can get at
	// the mount: so this is no fault.
	if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o004 != 0 {
		s.warn("the hash key's file is readable for everyone: chmod 600 %s", name)
	}
	return nil
}
