package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Bounds of what is read. The published files have lines of 2 kB and 50,000 requests.
const (
	maxLine  = 1 << 20
	maxLines = 4 << 20
	// maxUnits is 1 GiB of names.
	maxUnits = 1 << 27
	// maxLength is of a prompt or an answer, in tokens.
	maxLength = 1 << 24
)

var (
	errTooLarge = fmt.Errorf("want at most %d units of %d tokens in all, more came", maxUnits, UnitTokens)
	errNothing  = errors.New("no request is left within the limits")
)

// lines reads a file line by line and says where it is.
type lines struct {
	name string
	scan *bufio.Scanner
	n    int // of the line read last, from 1
}

func newLines(name string, r io.Reader) (*lines, error) {
	r, err := unpacked(r)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", name, err)
	}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, maxLine)
	return &lines{name: name, scan: scan}, nil
}

// unpacked looks at the first bytes, not at the file's name.
func unpacked(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	return gzip.NewReader(b)
}

// next returns io.EOF at the end. The line is valid until the next call.
func (l *lines) next() ([]byte, error) {
	more := l.scan.Scan()
	l.n++
	switch err := l.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, l.fault(fmt.Errorf("want at most %d bytes, more came", maxLine))
	case err != nil:
		return nil, l.fault(err)
	case !more:
		return nil, io.EOF
	case l.n > maxLines:
		return nil, l.fault(fmt.Errorf("want at most %d lines, more came", maxLines))
	}
	return l.scan.Bytes(), nil
}

// fault says where err was met.
func (l *lines) fault(err error) error { return fmt.Errorf("%s: line %d: %w", l.name, l.n, err) }
