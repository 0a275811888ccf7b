package member

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"kvca/state"
)

// FactKind says what a fact is about. Kinds that a node doesn't know it keeps and
// passes on all the same, for newer ones.
type FactKind uint8

// Kinds of facts.
const (
	Generation FactKind = iota + 1 // of a backend
	Drain                          // of a backend, by an operator
	Digest                         // of what a node holds
	Fleet                          // that an operator added (Value 1, Text says what) or removed (0) a backend

	// departure tells that the node Subject of boot Value left on purpose; memberlist
	// does not say which of the gone ones did.
	departure FactKind = 255
)

// ofBackend is whether the subject of such a fact is a backend.
func (k FactKind) ofBackend() bool { return k == Generation || k == Drain || k == Fleet }

// Fact is one small thing that every node should know. Of one Kind and Subject the
// greatest (Version, Origin, Value, Text) wins.
type Fact struct {
	Kind    FactKind
	Subject string // a backend's id or a node's name, 1 to 256 bytes
	Version uint64
	Value   uint64
	Origin  string // who says so, at most 256 bytes
	Text    string // what the kind needs besides, at most 512 bytes; older nodes drop it
}

const (
	maxFact       = 1200 // bytes of one on the wire
	maxFactString = 256
	MaxFactText   = 512 // bytes of a fact's text
	factFields    = 5   // that every node knows
	maxFields     = 16  // with those that a newer node adds
)

var errFact = errors.New("malformed fact")

// after tells whether f wins over o.
func (f *Fact) after(o *Fact) bool {
	switch {
	case f.Version != o.Version:
		return f.Version > o.Version
	case f.Origin != o.Origin:
		return f.Origin > o.Origin
	}
	if f.Value != o.Value {
		return f.Value > o.Value
	}
	return f.Text > o.Text
}

func (f *Fact) sane() error {
	switch {
	case f.Kind == 0:
		return fmt.Errorf("%w: it has no kind", errFact)
	case f.Subject == "" || len(f.Subject) > maxFactString || len(f.Origin) > maxFactString:
		return fmt.Errorf("%w: subject of %d bytes, origin of %d, at most %d fit", errFact, len(f.Subject), len(f.Origin), maxFactString)
	case len(f.Text) > MaxFactText:
		return fmt.Errorf("%w: text of %d bytes, at most %d fit", errFact, len(f.Text), MaxFactText)
	case f.Kind.ofBackend():
		if err := state.CheckBackendID(f.Subject); err != nil {
			return fmt.Errorf("%w: backend %.160q: %w", errFact, f.Subject, err)
		}
	}
	return nil
}

// AppendFact appends f's wire form: one msgpack array of kind, subject, version,
// value, origin and, where there is one, text.
func AppendFact(dst []byte, f *Fact) ([]byte, error) {
	if err := f.sane(); err != nil {
		return dst, err
	}
	buf := bytes.NewBuffer(dst)
	e := msgpack.NewEncoder(buf)
	fields := factFields
	if f.Text != "" {
		fields++
	}
	err := errors.Join(
		e.EncodeArrayLen(fields),
		e.EncodeUint(uint64(f.Kind)),
		e.EncodeString(f.Subject),
		e.EncodeUint(f.Version),
		e.EncodeUint(f.Value),
		e.EncodeString(f.Origin),
	)
	if f.Text != "" {
		err = errors.Join(err, e.EncodeString(f.Text))
	}
	return buf.Bytes(), err
}

// ParseFact reads what AppendFact wrote, whoever wrote it: what is too large or
// nested is refused before anything is decoded or allocated for it.
func ParseFact(b []byte) (Fact, error) {
	if err := checkFact(b); err != nil {
		return Fact{}, err
	}
	d := msgpack.NewDecoder(bytes.NewReader(b))
	var f Fact
	fields, err := d.DecodeArrayLen()
	kind, err1 := d.DecodeUint64()
	f.Kind = FactKind(min(kind, 256)) // 256 becomes 0, which is none
	var err2, err3, err4, err5 error
	f.Subject, err2 = d.DecodeString()
	f.Version, err3 = d.DecodeUint64()
	f.Value, err4 = d.DecodeUint64()
	f.Origin, err5 = d.DecodeString()
	var err6 error
	if fields > factFields {
		f.Text, err6 = d.DecodeString()
	}
	if err := errors.Join(err, err1, err2, err3, err4, err5, err6); err != nil {
		return Fact{}, fmt.Errorf("%w: %w", errFact, err)
	}
	return f, f.sane()
}

// factShape is what each known field must be, the text that may follow too.
var factShape = [factFields + 1]byte{'n', 's', 'n', 'n', 's', 's'}

// checkFact walks the headers of b without decoding it.
func checkFact(b []byte) error {
	if len(b) == 0 || len(b) > maxFact {
		return fmt.Errorf("%w: %d bytes", errFact, len(b))
	}
	fields, b := arrayHeader(b)
	if fields < factFields || fields > maxFields {
		return fmt.Errorf("%w: %d fields", errFact, fields)
	}
	for i := range fields {
		kind, size := scalar(b)
		if kind == 0 || size > len(b) {
			return fmt.Errorf("%w: field %d", errFact, i)
		}
		if i < len(factShape) && kind != factShape[i] {
			return fmt.Errorf("%w: field %d is of another type", errFact, i)
		}
		b = b[size:]
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes too many", errFact, len(b))
	}
	return nil
}

// arrayHeader gives the length of the array that begins b, -1 for anything else.
func arrayHeader(b []byte) (n int, rest []byte) {
	switch {
	case b[0]&0xf0 == 0x90:
		return int(b[0] & 0x0f), b[1:]
	case b[0] == 0xdc && len(b) >= 3:
		return int(binary.BigEndian.Uint16(b[1:])), b[3:]
	}
	return -1, nil
}

// scalar tells what begins b, 'n' a number that is not negative or 's' a string, and how many
// bytes it says to have; 0 for anything else.
func scalar(b []byte) (kind byte, size int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch c := b[0]; {
	case c < 0x80:
		return 'n', 1
	case c >= 0xcc && c <= 0xcf: // uint8 to uint64
		return 'n', 1 + 1<<(c-0xcc)
	case c&0xe0 == 0xa0:
		return 's', 1 + int(c&0x1f)
	case c == 0xd9 && len(b) >= 2:
		return 's', 2 + int(b[1])
	case c == 0xda && len(b) >= 3:
		return 's', 3 + int(binary.BigEndian.Uint16(b[1:]))
	}
	return 0, 0
}
