package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// conversation is a chat of a system prompt of n letters and one exchange.
func conversation(n int, followUp bool) string {
	messages := `{"role":"system","content":"` + strings.Repeat("a", n) + `"},{"role":"user","content":"hello"}`
	if followUp {
		messages += `,{"role":"assistant","content":"hi"},{"role":"user","content":"and now?"}`
	}
	return `{"model":"sim","messages":[` + messages + `],"max_tokens":4}`
}

// The output is what scripts compare between nodes and versions: with the key of
// the default cluster name it never changes.
func TestChainIsStable(t *testing.T) {
	out, errs, code := kvca(t, conversation(1500, true), "chain")
	if code != 0 {
		t.Fatal(errs)
	}
	golden(t, "testdata/chain.json", out)
}

func TestChainOfAShorterPromptIsItsPrefix(t *testing.T) {
	var first, second chainReport
	for report, in := range map[*chainReport]string{&first: conversation(1500, false), &second: conversation(1500, true)} {
		out, errs, code := kvca(t, in, "chain", "--block-size", "64")
		if code != 0 {
			t.Fatal(errs)
		}
		if err := json.Unmarshal([]byte(out), report); err != nil {
			t.Fatal(err)
		}
	}
	if first.Phase != "bootstrap" || second.Phase != "follow-up" || first.Blocks < 20 || len(first.Hashes) != first.Blocks {
		t.Errorf("got %+v and %+v", first, second)
	}
	for i, hash := range first.Hashes {
		if len(hash) != 16 || second.Hashes[i] != hash {
			t.Fatalf("block %d is %q and %q", i, hash, second.Hashes[i])
		}
	}
}

func TestPromptShorterThanABlockIsBootstrap(t *testing.T) {
	out, _, code := kvca(t, conversation(1, true), "chain")
	if code != 0 || !strings.Contains(out, `"phase":"bootstrap"`) || !strings.Contains(out, `"blocks":0,"hashes":[]`) {
		t.Errorf("code %d, output %q", code, out)
	}
}

func TestHashKeyChangesTheChain(t *testing.T) {
	one, _, _ := kvca(t, conversation(600, false), "chain")
	two, _, code := kvca(t, conversation(600, false), "chain", "--hash-key", "000102030405060708090a0b0c0d0e0f")
	if code != 0 || one == two {
		t.Errorf("code %d, outputs %q and %q", code, one, two)
	}
}

func TestChainRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		"want one of /v1/chat/completions": {"--endpoint", "/v1/embeddings"},
		"want a multiple of 8":             {"--block-size", "100"},
		"want 32 hex digits":               {"--hash-key", "12"},
	} {
		if out, errs, code := kvca(t, conversation(1, false), append([]string{"chain"}, args...)...); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, output %q, errors %q", args, code, out, errs)
		}
	}
	if out, errs, code := kvca(t, `{"messages":`, "chain"); code != 1 || out != "" || !strings.HasPrefix(errs, "kvca: chain: ") {
		t.Errorf("code %d, output %q, errors %q", code, out, errs)
	}
}
