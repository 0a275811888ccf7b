package main

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// The readers below turn the text of one value into what it means. Their errors
// quote the value and say what would be right.

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// readSize reads a number of bytes: plain, or in KiB, MiB or GiB.
func readSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for _, u := range sizeUnits {
		if head, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = strings.TrimSpace(head), u.bytes
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size: want bytes, or a whole number of KiB, MiB or GiB such as 96MiB", text)
	}
	return n * unit, nil
}

// readDuration reads a duration in Go's notation.
func readDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: want one such as 500ms, 60s or 10m", text)
	}
	return d, nil
}

func readCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number: want one such as 4", text)
	}
	return n, nil
}

func readFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is no number: want one such as 1.5", text)
	}
	return f, nil
}

func readBool(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q: want true or false", text)
}

// checkAddress checks an address to listen on.
func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is no address: want HOST:PORT, such as 127.0.0.1:8080, or :8080 for every interface", text)
	}
	return nil
}

// readPrefix reads a CIDR, or a single address.
func readPrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no network: want a CIDR such as 10.0.0.0/8, or one address", text)
	}
	return prefix.Masked(), nil
}

// checkName checks a name that ends up in logs, headers and labels.
func checkName(text string) error {
	bad := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\ufffd' }
	if text == "" || len(text) > 128 || strings.IndexFunc(text, bad) >= 0 {
		return fmt.Errorf("%.160q is no name: want 1 to 128 bytes without spaces and control characters", text)
	}
	return nil
}

// oneOf checks a choice.
func oneOf(text string, names ...string) error {
	for _, n := range names {
		if n == text {
			return nil
		}
	}
	return fmt.Errorf("%q: want one of %s", text, strings.Join(names, ", "))
}
