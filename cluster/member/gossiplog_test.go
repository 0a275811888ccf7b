package member

import "testing"

// The lines are memberlist's own, of v0.7.0; suspicion and keys are also seen from
// the outside by other tests.
func TestEventsAreFoundInGossipsLog(t *testing.T) {
	for _, c := range []struct {
		line string
		want event
		name string
	}{
		{"[INFO] memberlist: Suspect gw 1 has failed, no acks received\n", suspected, "gw 1"},
		{"[WARN] memberlist: Refuting a suspect message (from: b)\n", 0, ""},
		{"[INFO] memberlist: Marking b as failed, suspect timeout reached (1 peer confirmations)\n", 0, ""},
		{"[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt the message from=1.2.3.4:5\n", undecrypted, "1.2.3.4:5"},
		{"[ERR] memberlist: failed to receive: encryption is configured but remote state is not encrypted from=1.2.3.4:5\n", inClear, "1.2.3.4:5"},
		{"[ERR] memberlist: failed to receive: remote state is encrypted and encryption is not configured from=1.2.3.4:5\n", noKey, "1.2.3.4:5"},
		{"[DEBUG] memberlist: failed to join [::1]:5: no installed keys could decrypt the message\n", undecrypted, "[::1]:5"},
		{"[WARN] memberlist: handler queue full, dropping message (8) from=1.2.3.4:5\n", queueFull, "1.2.3.4:5"},
		{"[WARN] memberlist: Was able to connect to b over TCP but UDP probes failed, network may be misconfigured\n", tcpOnly, ""},
		{"[ERR] memberlist: msg type (77) not supported from=1.2.3.4:5\n", badPacket, "1.2.3.4:5"},
		{"[ERR] memberlist: Failed to decode alive message: EOF from=1.2.3.4:5\n", badPacket, "1.2.3.4:5"},
		{"[ERR] memberlist: failed to receive: EOF from=1.2.3.4:5\n", badStream, "1.2.3.4:5"},
		{"[DEBUG] memberlist: Stream connection from=1.2.3.4:5\n", 0, ""},
		{"[ERR] memberlist: Push/Pull with b failed: dial tcp 10.0.0.2:1: connection refused\n", 0, ""},
	} {
		_, text := splitLevel(c.line)
		if e, name := find(text); e != c.want || name != c.name {
			t.Errorf("%q is event %d of %q, want %d of %q", c.line, e, name, c.want, c.name)
		}
	}
}
