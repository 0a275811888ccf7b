package jinja

import (
	"slices"
	"strconv"
)

// Value is what an expression gives: nil (None), bool, int64, BigInt, float64,
// string, *List, *Dict, and within a template also Undefined and what can be called.
type Value = any

// BigInt is an integer that an int64 can't hold, as Python prints it. It can be
// printed and compared for equality, and not calculated with.
type BigInt string

// Undefined is what a name or a member that doesn't exist gives.
type Undefined struct{ name string }

// Markup is a string that a template declared safe: what is added to it is escaped.
type Markup string

// List is a list, or what else has items in Python.
type List struct {
	Items []Value
	kind  listKind
}

type listKind uint8

const (
	list      listKind = iota
	tuple              // another type with other brackets
	view               // of a dict: no subscripts
	generator          // of a filter: no length, always true, and empty once it was gone through
)

// NewList is a list of these items.
func NewList(items ...Value) *List { return &List{Items: items} }

func newTuple(items ...Value) *List { return &List{Items: items, kind: tuple} }

// Dict is a dictionary that keeps the order in which its keys were first set.
type Dict struct {
	keys   []string // as keyOf makes them
	values []Value
	index  map[string]int // nil while there are few keys
}

// fewKeys is up to how many keys comparing them beats hashing.
const fewKeys = 8

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// At is the n-th key and its value.
func (d *Dict) At(n int) (string, Value) { return str(d.key(n)), d.values[n] }

// key is the n-th key as a value.
func (d *Dict) key(n int) Value {
	k := d.keys[n]
	if k == "" || k[0] != 0 {
		return k
	}
	if k[1] == 's' {
		return k[2:]
	}
	i, _ := strconv.ParseInt(k[2:], 10, 64)
	return i
}

// keyOf is how a dict holds a key: strings as they are, unless they begin with a zero
// byte, which marks those that are integers. False: no such key is supported.
func keyOf(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		if v != "" && v[0] == 0 {
			return "\x00s" + v, true
		}
		return v, true
	case int64:
		return "\x00i" + strconv.FormatInt(v, 10), true
	}
	return "", false
}

func (d *Dict) find(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	return slices.Index(d.keys, key)
}

// Get is the value of a key.
func (d *Dict) Get(key string) (Value, bool) { return d.get(key) }

func (d *Dict) get(k Value) (Value, bool) {
	key, ok := keyOf(k)
	if !ok {
		return nil, false
	}
	if i := d.find(key); i >= 0 {
		return d.values[i], true
	}
	return nil, false
}

// Set sets the value of a key; a new one goes to the end.
func (d *Dict) Set(key string, v Value) { d.set(key, v) }

func (d *Dict) set(k, v Value) {
	key, ok := keyOf(k)
	if !ok {
		fail("keys of type %s are not supported", typeName(k))
	}
	if i := d.find(key); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys, d.values = append(d.keys, key), append(d.values, v)
	if d.index != nil {
		d.index[key] = len(d.keys) - 1
	} else if len(d.keys) > fewKeys {
		d.index = make(map[string]int, 2*len(d.keys))
		for i, k := range d.keys {
			d.index[k] = i
		}
	}
}

// Delete takes a key out.
func (d *Dict) Delete(key string) {
	key, _ = keyOf(key)
	i := d.find(key)
	if i < 0 {
		return
	}
	d.keys, d.values = slices.Delete(d.keys, i, i+1), slices.Delete(d.values, i, i+1)
	if d.index = nil; len(d.keys) > fewKeys {
		d.index = make(map[string]int, len(d.keys))
		for i, k := range d.keys {
			d.index[k] = i
		}
	}
}

// namespace is what namespace() makes, the one thing whose members a template sets.
type namespace struct{ Dict }

// callable is a function, a method of a value, or a macro.
type callable struct {
	name string
	call func(f *frame, a arguments) Value
}

// arguments are those of a call.
type arguments struct {
	list  []Value
	names []string // of the last ones of list
}

func (a *arguments) positional() []Value { return a.list[:len(a.list)-len(a.names)] }

// named is the argument of that name.
func (a *arguments) named(name string) (Value, bool) {
	if i := slices.Index(a.names, name); i >= 0 {
		return a.list[len(a.list)-len(a.names)+i], true
	}
	return nil, false
}

// get is the n-th argument, or the one of that name.
func (a *arguments) get(n int, name string) (Value, bool) {
	if p := a.positional(); n < len(p) {
		return p[n], true
	}
	return a.named(name)
}

// or is get with a default.
func (a *arguments) or(n int, name string, otherwise Value) Value {
	if v, ok := a.get(n, name); ok {
		return v
	}
	return otherwise
}

// must is get of an argument without which a call fails.
func (a *arguments) must(n int, name string) Value {
	v, ok := a.get(n, name)
	if !ok {
		fail("argument %q is missing", name)
	}
	return v
}

// atMost fails a call with arguments that nothing here knows of: guessing what they
// mean would guess the prompt.
func (a *arguments) atMost(n int, names ...string) {
	if len(a.positional()) > n {
		fail("%d arguments, want at most %d", len(a.positional()), n)
	}
	for _, name := range a.names {
		if !slices.Contains(names, name) {
			fail("unknown argument %q", name)
		}
	}
}

// truth is bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case nil, Undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case Markup:
		return v != ""
	case *List:
		return len(v.Items) > 0 || v.kind == generator
	case *Dict:
		return v.Len() > 0
	}
	return true
}
