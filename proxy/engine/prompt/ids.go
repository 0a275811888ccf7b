package prompt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

var errIDs = errors.New("not a list of token ids: want whole numbers from 0 to 4294967295")

// parseIDs reads a JSON array of token ids, at most so many. It is nine tenths of
// the work on an answer, hence by hand; the array is counted before it is read,
// and the result has no spare capacity.
func parseIDs(raw []byte, limit int) ([]uint32, error) {
	raw = trim(raw)
	if len(raw) < 2 || raw[0] != '[' || raw[len(raw)-1] != ']' {
		return nil, errIDs
	}
	raw = trim(raw[1 : len(raw)-1])
	if len(raw) == 0 {
		return []uint32{}, nil
	}
	n := bytes.Count(raw, []byte{','}) + 1
	if n > limit {
		return nil, fmt.Errorf("%d token ids: want at most %d for this prompt", n, limit)
	}
	ids := make([]uint32, n)
	for i := range ids {
		id, rest, ok := takeID(raw)
		if !ok || (i < n-1) != (len(rest) > 0) {
			return nil, errIDs
		}
		ids[i] = id
		if i < n-1 {
			if rest[0] != ',' {
				return nil, errIDs
			}
			raw = rest[1:]
		}
	}
	return ids, nil
}

// takeID reads a number from the front, and the white space on both sides of it.
func takeID(b []byte) (id uint32, rest []byte, ok bool) {
	i := 0
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	begin, v := i, uint64(0)
	for i < len(b) && b[i]-'0' <= 9 {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	digits := i - begin
	if digits == 0 || digits > 10 || v > math.MaxUint32 || digits > 1 && b[begin] == '0' {
		return 0, nil, false
	}
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return uint32(v), b[i:], true
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func trim(b []byte) []byte { return bytes.Trim(b, " \n\t\r") }
