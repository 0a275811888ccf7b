package prompt

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// walker walks through JSON in one pass, without building anything of it.
type walker struct{ d *jsontext.Decoder }

// members calls f at the value of each member of an object; f reads or skips it.
func (w walker) members(f func(name string) error) error {
	if kind := w.d.PeekKind(); kind != '{' {
		return w.unexpected("an object", kind)
	}
	if _, err := w.d.ReadToken(); err != nil {
		return err
	}
	for w.d.PeekKind() == '"' {
		name, err := w.d.ReadToken()
		if err != nil {
			return err
		}
		if err := f(name.String()); err != nil {
			return err
		}
	}
	_, err := w.d.ReadToken() // the end, or what is wrong
	return err
}

// elements calls f at each element of an array; f reads or skips it.
func (w walker) elements(f func(i int) error) error {
	if kind := w.d.PeekKind(); kind != '[' {
		return w.unexpected("an array", kind)
	}
	if _, err := w.d.ReadToken(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if kind := w.d.PeekKind(); kind == ']' || kind == 0 {
			_, err := w.d.ReadToken()
			return err
		}
		if err := f(i); err != nil {
			return err
		}
	}
}

func (w walker) unexpected(want string, kind jsontext.Kind) error {
	if kind != 0 {
		return fmt.Errorf("want %s, got %v at byte %d", want, kind, w.d.InputOffset())
	}
	_, err := w.d.ReadToken()
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// null skips a null and reports whether it was one.
func (w walker) null() bool { return w.d.PeekKind() == 'n' && w.d.SkipValue() == nil }
