package listen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// The PROXY protocol, https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt

const (
	textStart = "PROXY "
	textMost  = 107 // the longest line of version 1, with its end
	binStart  = "\r\n\r\n\x00\r\nQUIT\n"
	binFixed  = 16
)

// A proxyHeader is what a load balancer says of a connection.
type proxyHeader struct {
	// client is invalid where the balancer speaks for itself, or can't say.
	client netip.AddrPort
	size   int // of the header in bytes; 0 where there is none
}

var errMore = errors.New("the header is not complete")

// parseProxyHeader reads the header at the start of a connection. errMore asks for
// more bytes; no header is no error.
func parseProxyHeader(b []byte) (proxyHeader, error) {
	switch {
	case begins(b, textStart):
		if len(b) < len(textStart) {
			return proxyHeader{}, errMore
		}
		return parseText(b)
	case begins(b, binStart):
		if len(b) < binFixed {
			return proxyHeader{}, errMore
		}
		return parseBinary(b)
	}
	return proxyHeader{}, nil
}

// begins is whether b begins with the start, as far as there are bytes.
func begins(b []byte, start string) bool {
	n := min(len(b), len(start))
	return string(b[:n]) == start[:n]
}

// parseText reads version 1: PROXY TCP4 192.0.2.1 192.0.2.2 56324 443
func parseText(b []byte) (proxyHeader, error) {
	line := b[:min(len(b), textMost)]
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		if len(b) >= textMost {
			return proxyHeader{}, fmt.Errorf("PROXY line: expected its end within %d bytes", textMost)
		}
		return proxyHeader{}, errMore
	}
	text, ok := strings.CutSuffix(string(line[:end]), "\r")
	if !ok {
		return proxyHeader{}, errors.New("PROXY line: expected a carriage return before its end")
	}
	h := proxyHeader{size: end + 1}
	words := strings.Split(text, " ")
	if words[1] == "UNKNOWN" {
		return h, nil
	}
	if len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6" {
		return proxyHeader{}, fmt.Errorf("PROXY line: expected TCP4 or TCP6, two addresses and two ports, got %q", text)
	}
	for i := range 2 { // the destination too: a faulty line is not half believed
		addr, err := netip.ParseAddr(words[2+i])
		if err != nil || addr.Is4() != (words[1] == "TCP4") || addr.Zone() != "" {
			return proxyHeader{}, fmt.Errorf("PROXY line: expected an address of %s, got %q", words[1], words[2+i])
		}
		port, err := parsePort(words[4+i])
		if err != nil {
			return proxyHeader{}, err
		}
		if i == 0 {
			h.client = netip.AddrPortFrom(addr.Unmap(), port)
		}
	}
	return h, nil
}

func parsePort(s string) (uint16, error) {
	port, err := strconv.ParseUint(s, 10, 16)
	if err != nil || s != strconv.FormatUint(port, 10) {
		return 0, fmt.Errorf("PROXY line: expected a port, got %q", s)
	}
	return uint16(port), nil
}

// parseBinary reads version 2. What follows the addresses, certificates of clients
// and the like, is passed over.
func parseBinary(b []byte) (proxyHeader, error) {
	command, family := b[12], b[13]
	size := binFixed + int(binary.BigEndian.Uint16(b[14:]))
	if command != 0x20 && command != 0x21 {
		return proxyHeader{}, fmt.Errorf("PROXY header: expected version 2 with command 0 or 1, got %#x", command)
	}
	addresses := 0 // two addresses and two ports
	switch family {
	case 0x00: // unspecified
	case 0x11:
		addresses = 4 + 4 + 2 + 2
	case 0x21:
		addresses = 16 + 16 + 2 + 2
	case 0x31: // a Unix socket: no address that we could use
		addresses = 108 + 108
	default:
		return proxyHeader{}, fmt.Errorf("PROXY header: expected the family of a stream, got %#x", family)
	}
	if size < binFixed+addresses {
		return proxyHeader{}, fmt.Errorf("PROXY header: expected %d bytes of addresses, got %d", addresses, size-binFixed)
	}
	if len(b) < size {
		return proxyHeader{}, errMore
	}
	h := proxyHeader{size: size}
	if command == 0x21 && (family == 0x11 || family == 0x21) {
		width := (addresses - 4) / 2
		addr, _ := netip.AddrFromSlice(b[binFixed : binFixed+width])
		port := binary.BigEndian.Uint16(b[binFixed+2*width:])
		h.client = netip.AddrPortFrom(addr.Unmap(), port)
	}
	return h, nil
}
