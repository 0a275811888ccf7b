package prompt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

var errIDs = errors.New("not a list of token ids: want whole numbers from 0 to 4294967295")

// idScanner reads a JSON array of token ids, piece by piece. That is nine tenths of
// what an answer consists of, hence by hand: six times as fast as by tokens.
type idScanner struct {
	ids   []uint32
	limit int
	state scanState
	v     uint64 // the id being read
}

type scanState uint8

const (
	beforeList scanState = iota
	beforeFirst
	beforeID
	inID
	afterID
)

// feed takes the next piece. With done, rest is what follows the array.
func (s *idScanner) feed(b []byte) (rest []byte, done bool, err error) {
	state, v, ids := s.state, s.v, s.ids
	for i, c := range b {
		if d := c - '0'; d <= 9 {
			switch {
			case state == beforeFirst || state == beforeID:
				state, v = inID, uint64(d)
			case state == inID && v > 0 && v*10+uint64(d) <= math.MaxUint32:
				v = v*10 + uint64(d)
			default:
				return nil, false, errIDs
			}
			continue
		}
		if state == inID {
			if len(ids) == s.limit {
				return nil, false, fmt.Errorf("more than %d token ids: too many for this prompt", s.limit)
			}
			ids, state = append(ids, uint32(v)), afterID
		}
		switch {
		case c == ',' && state == afterID:
			state = beforeID
		case c == '[' && state == beforeList:
			state = beforeFirst
		case c == ']' && (state == afterID || state == beforeFirst):
			s.ids = ids
			return b[i+1:], true, nil
		case !isSpace(c):
			return nil, false, errIDs
		}
	}
	s.state, s.v, s.ids = state, v, ids // in locals until here: they stay in registers
	return nil, false, nil
}

// compact is the ids, with little spare capacity: they are kept.
func (s *idScanner) compact() []uint32 {
	if cap(s.ids)-len(s.ids) > len(s.ids)/8 {
		return append(make([]uint32, 0, len(s.ids)), s.ids...)
	}
	return s.ids
}

// parseIDs reads an array that is there, at most so many ids.
func parseIDs(raw []byte, limit int) ([]uint32, error) {
	s := idScanner{limit: limit, ids: []uint32{}}
	rest, done, err := s.feed(raw)
	if err == nil && (!done || slices.ContainsFunc(rest, func(c byte) bool { return !isSpace(c) })) {
		err = errIDs
	}
	return s.compact(), err
}

// scanIDs reads an array as it arrives, and nothing behind it. Room is made at once
// for as many ids as a prompt of that limit has on average.
func scanIDs(r *bufio.Reader, limit int) ([]uint32, error) {
	s := idScanner{limit: limit, ids: make([]uint32, 0, min(limit/(2*bytesPerToken), 1<<20))}
	for {
		if _, err := r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		b, _ := r.Peek(r.Buffered())
		rest, done, err := s.feed(b)
		_, _ = r.Discard(len(b) - len(rest)) // they are buffered
		if err != nil || done {
			return s.compact(), err
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
