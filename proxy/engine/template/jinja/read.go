package jinja

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep values of a JSON text may be nested.
const MaxDepth = 256

// ReadJSON reads a JSON text as Python does: members keep their order, a doubled one
// has its first place and last value, and integers stay integers.
func ReadJSON(data []byte) (Value, error) {
	d := jsontext.NewDecoder(strings.NewReader(string(data)), jsontext.AllowDuplicateNames(true))
	v, err := readValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

func readValue(d *jsontext.Decoder, depth int) (Value, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("JSON nested more than %d deep", MaxDepth)
	}
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		return readNumber(t.String())
	case '[':
		return readList(d, depth)
	default:
		return readDict(d, depth)
	}
}

func readList(d *jsontext.Decoder, depth int) (Value, error) {
	l := NewList()
	for d.PeekKind() != ']' {
		v, err := readValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.ReadToken()
	return l, err
}

func readDict(d *jsontext.Decoder, depth int) (Value, error) {
	dict := &Dict{}
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := key.String()
		v, err := readValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		dict.Set(name, v)
	}
	_, err := d.ReadToken()
	return dict, err
}

// maxDigits is how long an integer Python reads.
const maxDigits = 4300

func readNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // out of range is infinite, as in Python
		return f, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil:
		return n, nil
	case len(s) > maxDigits:
		return nil, fmt.Errorf("integer of %d digits, want at most %d", len(s), maxDigits)
	}
	return BigInt(s), nil
}
