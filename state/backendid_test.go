package state

import (
	"strings"
	"testing"
)

func TestBackendIDsAreWhatTheyLookLike(t *testing.T) {
	for _, id := range []string{
		"a", "gpu-1", "GPU_1.rack@eu", "sim-0", "10.0.0.1:8000", "vllm-0.default:8000", "_http._tcp.vllm:80", "[::1]:9", "[fe80::1%eth0]:8000", "...",
		strings.Repeat("x", MaxBackendID),
	} {
		if err := CheckBackendID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{
		"", ".", "..", "*", "a*", "a b", " a", "a\t", "a\n", "\x00", "\x1b[2J", "a/b", `a\b`, "a,b", "a=b", "a?b", "a#b", `a"b`, "a'b", "<a>", "a;b", "a&b", "a|b", "a+b", "{a}", "a$b", "a`b", "a~b",
		"gpu\u202e1-", "gpu\u200b1", "\u0430", "gpu\u00a01", "bücher:80", "\ufffd", "\xff", "a\x7f", "a@\x80",
		strings.Repeat("x", MaxBackendID+1),
	} {
		if err := CheckBackendID(id); err == nil {
			t.Errorf("%q may be an id", id)
		} else if !strings.Contains(err.Error(), "1 to 128 letters") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
