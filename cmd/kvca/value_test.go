package main

import (
	"strings"
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "1KiB": 1 << 10, "96MiB": 96 << 20, "2 GiB": 2 << 30, "8589934591GiB": 8589934591 << 30,
	} {
		if got, err := readSize(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "96MB", "96mib", "1KiBMiB", "8589934592GiB", "9223372036854775808", "0x10"} {
		if got, err := readSize(text); err == nil {
			t.Errorf("%q was taken as %d", text, got)
		} else if !strings.Contains(err.Error(), "want bytes") {
			t.Errorf("%q: %v does not say what would be right", text, err)
		}
	}
}

func TestShownSizesReadBack(t *testing.T) {
	for _, n := range []int64{0, 1, 1023, 1024, 1536, 96 << 20, 3 << 30} {
		text := strings.TrimSuffix(showSize(n), " bytes")
		if got, err := readSize(text); err != nil || got != n {
			t.Errorf("%d is shown as %q and read as %d, %v", n, text, got, err)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "500ms": 500 * time.Millisecond, "1m30s": 90 * time.Second} {
		if got, err := readDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "60", "1 m", "10minutes", "1d"} {
		if _, err := readDuration(text); err == nil || !strings.Contains(err.Error(), "want one such as") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, text := range []string{":8080", "127.0.0.1:0", "[::1]:80", "gw.example:8080"} {
		if err := checkAddress(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"", "8080", "127.0.0.1", "127.0.0.1:http-alt", "::1:80", "127.0.0.1:65536"} {
		if checkAddress(text) == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestPrefixes(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.3/8": "10.0.0.0/8", "10.1.2.3": "10.1.2.3/32", "fd00::1": "fd00::1/128", "::ffff:10.1.2.3": "10.1.2.3/32",
	} {
		if got, err := readPrefix(text); err != nil || got.String() != want {
			t.Errorf("%q: got %v, %v; want %s", text, got, err, want)
		}
	}
	if _, err := readPrefix("10.0.0.0/33"); err == nil {
		t.Error("/33 was taken")
	}
}

func TestNearestName(t *testing.T) {
	names := []string{"listen", "admin", "ttl", "drain_delay"}
	for word, want := range map[string]string{"lisen": "listen", "drain_dealy": "drain_delay", "ttls": "ttl", "gossip": ""} {
		if got := nearest(word, names); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}
