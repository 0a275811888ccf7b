package prompt

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

var errNotObject = errors.New("not a JSON object")

// lenient reads JSON as engines do: a key may repeat, a string may hold anything.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// decoder reads b where it lies.
func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), lenient...)
}

// eachMember calls f with the members of an object in their order, each value as
// it is spelled. Values lie in b.
func eachMember(b []byte, f func(name string, value []byte) error) error {
	d := decoder(b)
	if d.PeekKind() != '{' {
		return errNotObject
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := f(text, value); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// eachElement calls f with the elements of an array.
func eachElement(b []byte, f func(value []byte) error) error {
	d := decoder(b)
	if kind := d.PeekKind(); kind != '[' {
		return fmt.Errorf("not a JSON array but %v", kind)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := f(value); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

func kindOf(value []byte) byte {
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

// unquote returns a JSON string's text, empty where it is none.
func unquote(value []byte) string {
	if kindOf(value) != '"' {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// first is the first element of an array, as it is spelled.
func first(list []byte) []byte {
	var found []byte
	_ = eachElement(list, func(v []byte) error {
		found = v
		return errNotObject // enough
	})
	return found
}

// quote spells a text so that it can stand between quotes.
func quote(text string) (string, error) {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return "", fmt.Errorf("member name: %w", err)
	}
	return string(quoted[1 : len(quoted)-1]), nil
}
