package tenant

import (
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

const (
	maxTenants      = 5_000
	maxKeys         = 10_000
	maxModels       = 1024
	maxModelBytes   = 512
	maxNameBytes    = 64
	lowestClass     = 9
	defaultClass    = 5
	leastWeight     = 0.01
	mostWeight      = 1000
	leastPerSecond  = 1e-4
	mostPerSecond   = 1e9
	mostConcurrent  = 1_000_000
	leastBurst      = 10 * time.Millisecond
	mostBurst       = time.Hour
	defaultBurst    = time.Second
	defaultAnonName = "anonymous"
)

// snapshot is what one state of the keys file says. It never changes.
type snapshot struct {
	tenants   []*Tenant // in the order of the file, the anonymous one last
	anonymous *Tenant   // nil for none
	keys      map[digest]*key
	files     []string // the keys file and the salts' files
	salted    bool     // a salt stands in the keys file itself
}

// reading reads the file into a snapshot.
type reading struct {
	form
	snapshot
	names map[string]int // the line of each tenant's name
	lines map[*key]int   // where each key stands
}

// parse reads the text of the keys file at path, and the salts' files that it names.
func parse(path string, text []byte) (*snapshot, error) {
	r := &reading{
		form:     form{path: path},
		snapshot: snapshot{keys: make(map[digest]*key), files: []string{path}},
		names:    make(map[string]int),
		lines:    make(map[*key]int),
	}
	top := r.document(text)
	if top != nil {
		var anonymous *Tenant
		r.mapping(top, place{line: lineOf(top.GetToken())}, map[string]taker{
			"anonymous": func(n ast.Node, p place) { anonymous = r.tenant(n, p, true) },
			"tenants": func(n ast.Node, p place) {
				r.list(n, place{line: p.line}, "tenants", func(n ast.Node, p place) { r.add(r.tenant(n, p, false), p) })
			},
		})
		if anonymous != nil {
			r.anonymous = anonymous
			r.tenants = append(r.tenants, anonymous)
		}
	}
	if len(r.faults) == 0 && len(r.tenants) == 0 {
		r.fault(place{}, "there is no tenant: want a list of them under tenants, or anonymous for whoever comes without a key")
	}
	return &r.snapshot, r.err()
}

func (r *reading) add(t *Tenant, p place) {
	if len(r.tenants) == maxTenants {
		r.fault(p, "one tenant more than %d: want fewer", maxTenants)
	}
	if len(r.tenants) < maxTenants+1 {
		r.tenants = append(r.tenants, t)
	}
}

// tenant reads one tenant, or the anonymous one, which has no keys.
func (r *reading) tenant(n ast.Node, p place, anonymous bool) *Tenant {
	t := &Tenant{Class: defaultClass, Weight: 1}
	if anonymous {
		t.Name = defaultAnonName
	}
	named := p // where the name stands
	var salt, saltFile place
	takers := map[string]taker{
		"name":            func(n ast.Node, p place) { named = p; r.name(t, n, p) },
		"models":          func(n ast.Node, p place) { r.models(t, n, p) },
		"cache_salt":      func(n ast.Node, p place) { salt = p; r.salt(t, n, p) },
		"cache_salt_file": func(n ast.Node, p place) { saltFile = p; r.saltFile(t, n, p) },
		"class":           r.count(&t.Class, 0, lowestClass),
		"priority":        func(n ast.Node, p place) { r.priority(t, n, p) },
		"weight":          r.number(&t.Weight, leastWeight, mostWeight),
		"trusted":         r.truth(&t.Trusted),
		"limits":          func(n ast.Node, p place) { t.Limits = r.limits(n, p) },
		"per_model":       func(n ast.Node, p place) { r.perModel(t, n, p) },
	}
	if !anonymous {
		takers["keys"] = func(n ast.Node, p place) {
			r.list(n, p, "hashes", func(n ast.Node, p place) { r.key(t, n, p) })
		}
	}
	r.mapping(n, p, takers)
	if salt.line > 0 && saltFile.line > 0 {
		r.fault(saltFile, "cache_salt on line %d says it already: keep one", salt.line)
	}
	r.unique(t, named)
	r.checkPerModel(t, p)
	return t
}

// unique notes a tenant without a name or with another one's.
func (r *reading) unique(t *Tenant, p place) {
	if t.Name == "" {
		if p.at == "" { // else the name itself has a fault
			r.fault(p, "the tenant has no name: want name: and what logs and metrics shall call it")
		}
		return
	}
	if line := r.names[t.Name]; line > 0 {
		r.fault(p, "%q is the tenant on line %d already: want another name, or its keys there", t.Name, line)
		return
	}
	r.names[t.Name] = max(p.line, 1)
}

func (r *reading) name(t *Tenant, n ast.Node, p place) {
	const want = "1 to 64 letters, digits and any of . _ - + @ : /"
	text, ok := r.text(n, p, want)
	if !ok {
		return
	}
	bad := func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && !strings.ContainsRune("._-+@:/", c)
	}
	if text == "" || len(text) > maxNameBytes || strings.IndexFunc(text, bad) >= 0 {
		r.fault(p, "%.80q is no name: want %s", text, want)
		return
	}
	t.Name = text
}

// models reads names and prefixes. An empty list would allow all models, which is not
// what it looks like.
func (r *reading) models(t *Tenant, n ast.Node, p place) {
	const want = `a model's name, or its beginning and a *`
	r.list(n, p, "models", func(n ast.Node, p place) {
		text, ok := r.text(n, p, want)
		if !ok {
			return
		}
		if stem := strings.TrimSuffix(text, "*"); text == "" || len(text) > maxModelBytes || strings.Contains(stem, "*") {
			r.fault(p, "%.80q: want %s at the end", text, want)
		}
		t.Models = append(t.Models, text)
	})
	switch {
	case len(t.Models) == 0:
		r.fault(p, `is an empty list: want models, or "*" for all of them`)
	case len(t.Models) > maxModels:
		r.fault(p, "has %d models: want at most %d, or prefixes", len(t.Models), maxModels)
	}
}

func (r *reading) salt(t *Tenant, n ast.Node, p place) {
	text, ok := r.text(n, p, "a text, or cache_salt_file")
	if !ok {
		return
	}
	if err := checkSalt(text); err != nil {
		r.fault(p, "%v", err)
	}
	t.CacheSalt, r.salted = text, true
}

func (r *reading) saltFile(t *Tenant, n ast.Node, p place) {
	name, ok := r.text(n, p, "a file's path")
	if !ok {
		return
	}
	if name == "" {
		r.fault(p, "is empty: want a file's path")
		return
	}
	var path string
	t.CacheSalt, path = r.saltFrom(name, p)
	r.files = append(r.files, path)
}

func (r *reading) priority(t *Tenant, n ast.Node, p place) {
	text, ok := r.text(n, p, "0 or 100")
	switch {
	case text == "100":
		t.Priority = 100
	case ok && text != "0":
		r.fault(p, "%.40q: want 0 or 100", text)
	}
}
