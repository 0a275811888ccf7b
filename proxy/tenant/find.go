package tenant

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Why a request has no tenant. All of them are answered with 401.
var (
	// ErrNoKey is for a request without a key, where the file knows no anonymous.
	ErrNoKey = errors.New("no key: want Authorization: Bearer KEY, x-api-key: KEY, or api-key: KEY")
	// ErrUnknownKey is for a key that stands for no tenant, now.
	ErrUnknownKey = errors.New("the key is not known")
	// ErrExpiredKey is an ErrUnknownKey that once was known.
	ErrExpiredKey = fmt.Errorf("%w any more: it has expired", ErrUnknownKey)
	// ErrTwoKeys is for a request with two keys that differ: whichever was taken, it
	// could be the one that was not meant.
	ErrTwoKeys = errors.New("the request has two different keys: want one of Authorization, x-api-key and api-key")
)

// KeyHeaders are the headers that a key may stand in, in canonical form: those of
// OpenAI's API, Anthropic's and Azure's. They are the gateway's own: no backend
// should see them.
var KeyHeaders = [...]string{"Authorization", "X-Api-Key", "Api-Key"}

// Find is whose request it is. A request without a key is the anonymous tenant's,
// where there is one; one with a wrong key is nobody's.
func (d *Directory) Find(h http.Header) (*Tenant, error) {
	plain, ok := keyOf(h)
	if !ok {
		return nil, d.refuse(authAmbiguous, ErrTwoKeys)
	}
	s := d.snapshot.Load()
	if plain == "" {
		if s.anonymous == nil {
			return nil, d.refuse(authMissing, ErrNoKey)
		}
		d.metrics.auth[authAnonymous].Inc()
		return s.anonymous, nil
	}
	k := s.key(plain)
	switch {
	case k == nil:
		return nil, d.refuse(authUnknown, ErrUnknownKey)
	case k.expired(d.now()):
		return nil, d.refuse(authExpired, ErrExpiredKey)
	}
	d.metrics.auth[authOK].Inc()
	return k.tenant, nil
}

func (d *Directory) refuse(result authResult, err error) error {
	d.metrics.auth[result].Inc()
	return err
}

// key looks a client's key up.
func (s *snapshot) key(plain string) *key {
	if len(plain) > MaxKeyBytes {
		return nil
	}
	sum := digestOf(plain)
	if k := s.keys[sum]; k != nil && k.is(&sum) {
		return k
	}
	return nil
}

// keyOf is the key that a request has, "" for none, and false where it has two.
// An empty one is none: clients send the header whether or not they were given a key.
func keyOf(h http.Header) (plain string, one bool) {
	for _, name := range KeyHeaders {
		for _, value := range h[name] {
			if name == "Authorization" {
				value = bearer(value)
			}
			value = strings.Trim(value, " \t")
			switch {
			case value == "" || value == plain:
			case plain == "":
				plain = value
			default:
				return "", false
			}
		}
	}
	return plain, true
}

// bearer is the token of an Authorization header, "" for other schemes, which may be
// meant for a proxy on the way.
func bearer(value string) string {
	const scheme = "bearer "
	value = strings.TrimLeft(value, " \t")
	if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return ""
	}
	return value[len(scheme):]
}

// clock is time.Now but in tests.
type clock func() time.Time
