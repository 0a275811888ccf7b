package zmtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// splitCommand parts a command's body into its name and what follows.
func splitCommand(body []byte) (name string, rest []byte, err error) {
	if len(body) == 0 || int(body[0]) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, fmt.Errorf("command of %d bytes without a name: want its length and the name first", len(body))
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

func appendCommand(dst []byte, name string, rest []byte) []byte {
	dst = appendHeader(dst, flagCommand, 1+len(name)+len(rest))
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	return append(dst, rest...)
}

// ready is the body of a READY command that names our socket's type.
func ready(socketType string) []byte {
	const property = "Socket-Type"
	b := append([]byte{byte(len(property))}, property...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(socketType)))
	return append(b, socketType...)
}

// peerType finds the socket type in a READY command's properties.
func peerType(properties []byte) (string, error) {
	for rest := properties; len(rest) > 0; {
		n := 1 + int(rest[0])
		if len(rest) < n+4 {
			return "", errors.New("READY command with a property cut off: want name, length and value")
		}
		name := string(rest[1:n])
		size := binary.BigEndian.Uint32(rest[n:])
		rest = rest[n+4:]
		if uint64(size) > uint64(len(rest)) {
			return "", fmt.Errorf("READY command with a property of %d bytes, of which %d are there", size, len(rest))
		}
		if strings.EqualFold(name, "Socket-Type") {
			return string(rest[:size]), nil
		}
		rest = rest[size:]
	}
	return "", errors.New("READY command without a Socket-Type: want one")
}

// peers says which types a socket may talk with.
var peers = map[string][]string{
	"SUB":    {"PUB", "XPUB"},
	"DEALER": {"ROUTER", "DEALER", "REP"},
	"PUB":    {"SUB", "XSUB"},
	"ROUTER": {"DEALER", "REQ", "ROUTER"},
}

// refusal is the error that an ERROR command stands for.
func refusal(rest []byte) error {
	if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
		return errors.New("refused by the peer without a reason")
	}
	return fmt.Errorf("refused by the peer: %q", rest[1:1+int(rest[0])])
}
