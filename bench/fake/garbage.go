package fake

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Garbage is what a backend answers in the place of what it should.
type Garbage int32

const (
	// Sound answers as it should.
	Sound Garbage = iota
	// Noise is no HTTP at all.
	Noise
	// Cut is a body that ends before it is as long as was said.
	Cut
	// Failing is an engine that says of each request that it failed.
	Failing
	// Nonsense is a well-formed response whose body is nothing that an engine says.
	Nonsense
	garbages
)

// GarbageHeader names the garbage in the responses that have headers, so that a
// client can tell a backend's fault from a gateway's.
const GarbageHeader = "X-Fake-Garbage"

// String is the kind's name, as the switch knows it.
func (g Garbage) String() string {
	return [...]string{"sound", "noise", "cut", "failing", "nonsense"}[g]
}

// Garbages are the kinds but Sound.
func Garbages() []Garbage { return []Garbage{Noise, Cut, Failing, Nonsense} }

// setGarbage is the switch: POST /fake/garbage?kind=noise.
func (b *backend) setGarbage(w http.ResponseWriter, r *http.Request) {
	kind := r.URL.Query().Get("kind")
	for g := range garbages {
		if g.String() == kind {
			b.garbage.Store(int32(g))
			return
		}
	}
	http.Error(w, fmt.Sprintf("kind %q is unknown, want one of sound, noise, cut, failing, nonsense", kind), http.StatusBadRequest)
}

// mayLie serves garbage in the place of what a handler serves, while the switch says so.
func (b *backend) mayLie(honest http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g := Garbage(b.garbage.Load())
		if g == Sound {
			honest(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, b.cfg.MaxBodyBytes))
		w.Header().Set(GarbageHeader, g.String())
		switch g {
		case Noise:
			noise(w)
		case Cut:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "4096") // net/http cuts the connection when less comes
			_, _ = io.WriteString(w, `{"choices":[{"index":0,"mess`)
		case Failing:
			http.Error(w, "CUDA error: an illegal memory access was encountered", http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.Repeat("\x00\xff}]{", 200))
		}
	}
}

// noise writes what no HTTP client can read, and cuts the connection.
func noise(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(c, strings.Repeat("\x16\x03\x01 not at all \r\n\r\n", 50))
	_ = c.Close()
}
