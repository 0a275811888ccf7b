package cbr

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"kvca/state/chain"
)

var update = flag.Bool("update", false, "write testdata/golden.json anew")

const (
	goldenFile      = "testdata/golden.json"
	goldenKey       = "000102030405060708090a0b0c0d0e0f"
	goldenBlockSize = 16
)

type golden struct {
	Endpoint string          `json:"endpoint"`
	Body     json.RawMessage `json:"body"`
	CBR      string          `json:"cbr"`    // as %q prints it
	Hashes   []string        `json:"hashes"` // 16 hex digits each
}

// A change of these figures is a change of the byte format: nodes of both kinds
// would not share a single location, so formatVersion has to change with them.
func TestByteFormatIsStable(t *testing.T) {
	cases := readGolden(t)
	for i := range cases {
		c := &cases[i]
		cbr, hashes := encodeGolden(t, c)
		if *update {
			c.CBR, c.Hashes = cbr, hashes
		} else if cbr != c.CBR || !slices.Equal(hashes, c.Hashes) {
			t.Errorf("%s %s:\ngot  %s %v\nwant %s %v", c.Endpoint, c.Body, cbr, hashes, c.CBR, c.Hashes)
		}
	}
	if *update {
		writeGolden(t, cases)
	}
}

func encodeGolden(t *testing.T, c *golden) (cbr string, hashes []string) {
	key, err := chain.ParseKey(goldenKey)
	if err != nil {
		t.Fatal(err)
	}
	var h chain.Hasher
	h.Reset(key, goldenBlockSize)
	text := cbrOf(t, EndpointOf(c.Endpoint), string(c.Body))
	if _, err := h.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	hashes = []string{}
	for _, hash := range h.Hashes() {
		hashes = append(hashes, fmt.Sprintf("%016x", hash))
	}
	return fmt.Sprintf("%q", text), hashes
}

func readGolden(t *testing.T) []golden {
	raw, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var cases []golden
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

func writeGolden(t *testing.T, cases []golden) {
	raw, err := json.MarshalIndent(cases, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenFile, append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
