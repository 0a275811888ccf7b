package tenant

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// hashPrefix names the hash in the file, so that another can come beside it.
	hashPrefix = "sha256:"
	// MaxKeyBytes bounds a client's key.
	MaxKeyBytes = 256
	// MaxNoteBytes bounds what the file says of one.
	MaxNoteBytes = 200
	keyPrefix    = "kvca-"
	keyBytes     = 32
)

// digest is the hash of a key.
type digest [sha256.Size]byte

// key is what the file says of one key.
type key struct {
	digest  digest
	tenant  *Tenant
	expires time.Time // zero: never
	note    string
}

// NewKey makes a key from chance, and its hash for the keys file.
func NewKey() (plain, hash string) {
	var chance [keyBytes]byte
	rand.Read(chance[:]) // never fails: the runtime ends the program first
	plain = keyPrefix + base64.RawURLEncoding.EncodeToString(chance[:])
	return plain, Hash(plain)
}

// Hash is how a key stands in the keys file.
func Hash(plain string) string {
	sum := sha256.Sum256([]byte(plain))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// CheckKey is whether clients can send the key. Its error never shows the key.
func CheckKey(plain string) error {
	if len(plain) == 0 || len(plain) > MaxKeyBytes {
		return fmt.Errorf("the key has %d bytes: want 1 to %d", len(plain), MaxKeyBytes)
	}
	if strings.IndexFunc(plain, func(r rune) bool { return r <= ' ' || r >= 0x7f }) >= 0 {
		return errors.New("the key holds a space, a control character or one beyond ASCII: headers can't carry it; want letters, digits and punctuation")
	}
	return nil
}

// parseHash reads a hash of the file. Its errors never show the text, which is a key
// where someone has put one in the place of its hash.
func parseHash(text string) (digest, error) {
	var d digest
	digits, ok := strings.CutPrefix(text, hashPrefix)
	if !ok {
		return d, errors.New("is no hash, and keys don't belong into this file: want sha256: and 64 hex digits, as `kvca key --hash` prints them for the key on its standard input")
	}
	if len(digits) != 2*len(d) {
		return d, fmt.Errorf("has %d characters after sha256:, want 64 hex digits", len(digits))
	}
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return d, errors.New("has other characters than hex digits after sha256:, want 64 of them")
	}
	return d, nil
}

// digestOf hashes a client's key without an allocation. It must have at most
// MaxKeyBytes.
func digestOf(plain string) digest {
	var buffer [MaxKeyBytes]byte
	n := copy(buffer[:], plain)
	return sha256.Sum256(buffer[:n])
}

// is compares in a time that says nothing of where two hashes differ.
func (k *key) is(d *digest) bool { return subtle.ConstantTimeCompare(k.digest[:], d[:]) == 1 }

// expired is whether the key counts no more.
func (k *key) expired(now time.Time) bool { return !k.expires.IsZero() && !now.Before(k.expires) }
