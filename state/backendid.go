package state

import (
	"fmt"
	"strings"
)

// MaxBackendID bounds a backend's id, in bytes.
const MaxBackendID = 128

// backendIDMarks are what an id may have beside letters and digits. Those in the end are
// for host:port, the id of a backend that was given none: an address of IPv6 stands in
// brackets there, and may name its zone behind a %.
const backendIDMarks = "._-:@[]%"

var errBackendID = fmt.Errorf("want 1 to %d letters of a-z and A-Z, digits, and . _ - : @ [ ] %%, and neither . nor .. alone, such as gpu-1", MaxBackendID)

// CheckBackendID is what is wrong with a backend's id, nil for nothing. An id stands in
// paths of the admin API, in flags and lists between = and commas, in labels of metrics,
// in logs and on terminals, where it must be what it looks like; and * stands for all
// backends in some flags. So it is made of what means nothing else in any of them.
//
// Whatever comes from outside is checked by this: configurations, what is discovered, and
// what peers say.
func CheckBackendID(id string) error {
	if id == "" || id == "." || id == ".." || len(id) > MaxBackendID {
		return errBackendID
	}
	for i := range len(id) {
		if c := id[i]; c-'0' > 9 && (c|0x20)-'a' > 25 && strings.IndexByte(backendIDMarks, c) < 0 {
			return errBackendID
		}
	}
	return nil
}
