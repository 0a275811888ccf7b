package agent

import (
	"strings"
	"testing"
)

const token = "a token of some length"

func TestCredentialsAreReadByLine(t *testing.T) {
	c, err := ReadCredentials(strings.NewReader(`
# agents of rack 1
rack1   0123456789abcdef  b0,b1

rack2	fedcba9876543210	b2
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Names(); len(got) != 2 || got[0] != "rack1" || got[1] != "rack2" {
		t.Errorf("names %q", got)
	}
	if token, ok := c.Token("rack1"); !ok || string(token) != "0123456789abcdef" {
		t.Errorf("token %q %v", token, ok)
	}
	for _, tc := range []struct {
		name, backend string
		may           bool
	}{
		{"rack1", "b0", true},
		{"rack1", "b1", true},
		{"rack1", "b2", false},
		{"rack2", "b2", true},
		{"rack3", "b0", false},
		{"rack1", "", false},
	} {
		if got := c.May(tc.name, tc.backend); got != tc.may {
			t.Errorf("may %s describe %q: %v", tc.name, tc.backend, got)
		}
	}
	var none Credentials
	if _, ok := none.Token("rack1"); ok || none.May("rack1", "b0") || len(none.Names()) != 0 {
		t.Error("the zero value lets someone in")
	}
}

func TestAllFaultsOfCredentialsAreNamedAndNoToken(t *testing.T) {
	c, err := ReadCredentials(strings.NewReader(strings.Join([]string{
		"a0 tooshort b0",
		"a1 0123456789abcdef",
		"a2 0123456789abcdef b0,,b1",
		"a3 0123456789abcdef b0",
		"a3 fedcba9876543210 b1",
		"a\xff 0123456789abcdef b0",
	}, "\n")))
	if err == nil || len(c.Names()) != 0 {
		t.Fatalf("%v, names %v", err, c.Names())
	}
	for _, want := range []string{
		"line 1: a token of 8 bytes", "line 2: 2 words", "line 3: an empty backend id",
		`line 5: agent "a3" stands there twice`, "line 6: a name of 2 bytes",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not said: %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "tooshort") || strings.Contains(err.Error(), "0123") {
		t.Errorf("a token is said: %v", err)
	}
}

func FuzzReadCredentials(f *testing.F) {
	f.Add("a 0123456789abcdef b,c\n# x\n")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ReadCredentials(strings.NewReader(s))
		for _, name := range c.Names() {
			if token, ok := c.Token(name); err != nil || !ok || len(token) < minToken || name == "" {
				t.Errorf("let in: %q by %q, with error %v", name, token, err)
			}
		}
	})
}

func TestConfigNamesAllFaults(t *testing.T) {
	_, err := New(Config{Nodes: []string{"n0"}, Token: []byte("short"), MaxBytes: -1, Backends: []Backend{{ID: ""}, {ID: "b"}, {ID: "b", Ranks: -1}}})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{`node "n0": want HOST:PORT`, "Name has 0 bytes", "Token has 5 bytes", "MaxBytes is -1", "a backend id of 0 bytes", `"b" stands there twice`, "Ranks is -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not said: %q in\n%v", want, err)
		}
	}
	a, err := New(Config{Nodes: []string{"n0:1"}, Name: "a", Token: []byte(token), Backends: []Backend{{ID: "b", Ranks: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range []bool{true, true, false} {
		if _, err := a.Sink("b", rank); (err == nil) != want {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if _, err := a.Sink("c", 0); err == nil {
		t.Error("there is a sink of a backend that is not the agent's")
	}
}
