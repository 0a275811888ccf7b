package main

import (
	"cmp"
	"slices"
)

// resolve makes settings of what was given. For each option the first of flag,
// environment, file and default counts; what a later one says is checked all
// the same, since it will count one day. The error is of type faults and holds
// all of them.
func resolve(src sources) (*settings, error) {
	r := resolver{table: options(), settings: newSettings(), origins: make(map[string]origin)}
	inFile, wrong := src.readFile(r.table)
	r.faults = wrong
	for _, o := range r.table {
		r.choose(o, &src, inFile)
	}
	r.finish()
	// Those of the file come in its order, the others behind them.
	slices.SortStableFunc(r.faults, func(a, b fault) int {
		return cmp.Or(-cmp.Compare(min(a.line, 1), min(b.line, 1)), cmp.Compare(a.line, b.line))
	})
	return r.settings, r.faults.err()
}

type resolver struct {
	table    []*option
	settings *settings
	origins  map[string]origin // of what counts, by key
	faults   faults
}

// choose applies what counts for o and checks what doesn't.
func (r *resolver) choose(o *option, src *sources, inFile map[string]given) {
	target := r.settings
	offer := func(g given, ok bool) {
		if !ok {
			return
		}
		if target == r.settings {
			r.origins[o.key()] = g.origin
			r.settings.given[o.key()] = textsOf(g.items)
		}
		r.apply(o, target, g)
		target = newSettings() // whatever comes now is checked and forgotten
	}
	offer(src.fromFlag(o))
	offer(src.fromEnv(o))
	g, ok := inFile[o.key()]
	offer(g, ok)
	if target == r.settings {
		offer(byDef(o))
	}
}

// apply reads the values of one source into the settings.
func (r *resolver) apply(o *option, to *settings, g given) {
	for _, it := range g.items {
		at := g.origin
		if it.line > 0 {
			at.line = it.line
		}
		switch {
		case it.kind == mapping && o.setMapping != nil:
			for _, f := range o.setMapping(to, it) {
				f.place = at.place
				r.faults = append(r.faults, f)
			}
		case it.kind == unreadable: // noted when the file was read
		case it.kind != scalar:
			r.faults = append(r.faults, fault{at, o.key(), "holds " + it.kind.String() + ": want " + wanted(o)})
		default:
			if err := o.set(to, it.text); err != nil {
				r.faults = append(r.faults, fault{at, o.key(), err.Error()})
			}
		}
	}
}

// finish checks the settings as a whole. A fault of two keys is put where the
// first of them was set. Single values that are at fault were noted before, so
// then only what no value accounts for is of interest.
func (r *resolver) finish() {
	noted := r.faulty()
	for _, err := range r.settings.finish() {
		key := keyOfFault(err.Error())
		at, known := r.origins[key]
		if !known {
			at = byDefault
		}
		if !noted[key] {
			r.faults = append(r.faults, fault{at, key, trimKey(err.Error(), key)})
		}
	}
}

// faulty are the keys that have a fault already.
func (r *resolver) faulty() map[string]bool {
	keys := make(map[string]bool)
	for _, f := range r.faults {
		keys[f.key] = true
	}
	return keys
}

// keyNames are keys that the parts of a node have other names for.
var keyNames = map[string]string{"max_conns": "max_connections"}

// keyOfFault is the key that a part's fault begins with.
func keyOfFault(text string) string {
	word := leadingWord(text)
	return cmp.Or(keyNames[word], word)
}

// trimKey takes the key off a fault, which shows it by itself.
func trimKey(text, key string) string {
	word := leadingWord(text)
	rest := text[len(word):]
	if keyOfFault(text) != key {
		return text
	}
	for len(rest) > 0 && (rest[0] == ':' || rest[0] == ' ') {
		rest = rest[1:]
	}
	return rest
}
