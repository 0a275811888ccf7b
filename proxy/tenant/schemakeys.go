package tenant

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// key reads a hash, or a mapping of a hash and what is to know of it. The parser takes
// sha256:... without quotes for a mapping where it stands between braces: that is a
// hash too.
func (r *reading) key(t *Tenant, n ast.Node, p place) {
	k := &key{tenant: t}
	hashes := 0
	take := func(prefix string) taker {
		return func(n ast.Node, p place) {
			if hashes++; hashes > 1 {
				r.fault(p, "a second hash: want an element of the list for each")
				return
			}
			r.hash(k, prefix, n, p)
		}
	}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		r.secretly(n, p, map[string]taker{
			"hash":    take(""),
			"sha256":  take(hashPrefix),
			"expires": func(n ast.Node, p place) { r.expires(k, n, p) },
			"note":    func(n ast.Node, p place) { r.note(k, n, p) },
		})
		if hashes == 0 {
			r.fault(p, "has no hash: want hash: sha256:... beside the rest")
		}
	default:
		r.hash(k, "", n, p)
	}
}

// secretly is mapping where a key that isn't known may be a secret in the wrong place.
func (r *reading) secretly(n ast.Node, p place, takers map[string]taker) {
	r.secret = true
	r.mapping(n, p, takers)
	r.secret = false
}

func (r *reading) hash(k *key, prefix string, n ast.Node, p place) {
	text, ok := r.text(n, p, "a hash such as sha256:..., or a mapping with hash, expires and note")
	if !ok {
		return
	}
	d, err := parseHash(prefix + text)
	if err != nil {
		r.fault(p, "%v", err)
		return
	}
	k.digest = d
	if other := r.keys[d]; other != nil {
		r.fault(p, "is the key on line %d already: a key stands for one tenant", r.lines[other])
		return
	}
	if len(r.keys) == maxKeys {
		r.fault(p, "one key more than %d: want fewer", maxKeys)
	}
	if len(r.keys) <= maxKeys {
		r.keys[d], r.lines[k] = k, p.line
	}
}

// expires reads a moment, or a day to whose end in UTC the key counts.
func (r *reading) expires(k *key, n ast.Node, p place) {
	const want = "a day such as 2027-01-31, to whose end the key counts, or a time such as 2027-01-31T18:00:00Z"
	text, ok := r.text(n, p, want)
	if !ok {
		return
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		k.expires = day.AddDate(0, 0, 1)
		return
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.IsZero() {
		r.fault(p, "is neither: want %s", want)
		return
	}
	k.expires = at
}

func (r *reading) note(k *key, n ast.Node, p place) {
	want := fmt.Sprintf("a text of at most %d bytes", MaxNoteBytes)
	text, ok := r.text(n, p, want)
	if ok && len(text) > MaxNoteBytes {
		r.fault(p, "has %d bytes: want %s", len(text), want)
	}
	k.note = text
}
