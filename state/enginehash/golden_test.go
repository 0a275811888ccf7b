package enginehash

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// goldenCase is a case of testdata/golden.json.
type goldenCase struct {
	Algo      string      `json:"algo"`
	Seed      string      `json:"seed"`
	Untagged  bool        `json:"untagged"`
	BlockSize int         `json:"block_size"`
	Tokens    [][2]uint64 `json:"tokens"` // each from a first one to before another
	LoRA      string      `json:"lora"`
	LoRAPath  string      `json:"lora_path"`
	Salt      string      `json:"salt"`
	Media     [][3]any    `json:"media"` // id, offset, length
	Digests   []string    `json:"digests"`
}

func (g *goldenCase) prompt() *Prompt {
	p := &Prompt{LoRA: g.LoRA, LoRAPath: g.LoRAPath, Salt: g.Salt}
	for _, span := range g.Tokens {
		for t := span[0]; t < span[1]; t++ {
			p.Tokens = append(p.Tokens, uint32(t))
		}
	}
	for _, m := range g.Media {
		p.Media = append(p.Media, Media{ID: m[0].(string), Offset: int(m[1].(float64)), Length: int(m[2].(float64))})
	}
	return p
}

func (g *goldenCase) check(t interface{ Errorf(string, ...any) }, name string) {
	c, err := New(g.Algo, g.Seed)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if g.Untagged {
		c = c.Untagged()
	}
	got := c.AppendDigests(nil, g.prompt(), g.BlockSize)
	for i, want := range g.Digests {
		if len(got) < (i+1)*c.DigestSize() {
			t.Errorf("%s: %d bytes of digests, want %d digests", name, len(got), len(g.Digests))
			return
		}
		if d := hex.EncodeToString(got[i*c.DigestSize() : (i+1)*c.DigestSize()]); d != want {
			t.Errorf("%s (%s, untagged %v): block %d is %s, want %s", name, g.Algo, g.Untagged, i, d, want)
			return
		}
	}
	if len(got) != len(g.Digests)*c.DigestSize() {
		t.Errorf("%s: more than %d digests", name, len(g.Digests))
	}
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestDigestsAreThoseOfPythonsSerializers(t *testing.T) {
	var cases []goldenCase
	readJSON(t, "golden.json", &cases)
	for i := range cases {
		cases[i].check(t, strconv.Itoa(i))
	}
	if len(cases) < 60 {
		t.Errorf("only %d cases", len(cases))
	}
}

func TestHashesAreThoseOfARealEngine(t *testing.T) {
	var cases []struct {
		Algo      string   `json:"algo"`
		Seed      string   `json:"seed"`
		BlockSize int      `json:"block_size"`
		Case      string   `json:"case"`
		Digests   []string `json:"digests_hex"`
		Wire      []string `json:"event_u64"`
	}
	readJSON(t, "golden_sha256_cbor.json", &cases)
	for _, c := range cases {
		g := goldenCase{Algo: c.Algo, Seed: c.Seed, BlockSize: c.BlockSize, Tokens: [][2]uint64{{1000, 1100}}, Digests: c.Digests}
		if c.Case == "salt" {
			g.Salt = "abc"
		}
		g.check(t, c.Case)
		chain, err := New(c.Algo, c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		var wire []string
		for _, h := range chain.Append(nil, g.prompt(), c.BlockSize) {
			wire = append(wire, strconv.FormatUint(h, 10))
		}
		if !slices.Equal(wire, c.Wire) {
			t.Errorf("%s, seed %s, block size %d: got %v, want %v", c.Case, c.Seed, c.BlockSize, wire, c.Wire)
		}
	}
}

func TestChainBeginsWithTheHashOfTheSeed(t *testing.T) {
	var byAlgorithm map[string]map[string]string
	readJSON(t, "none_hash.json", &byAlgorithm)
	if len(byAlgorithm) != len(algorithms) {
		t.Errorf("vectors for %d of %d algorithms", len(byAlgorithm), len(algorithms))
	}
	for name, seeds := range byAlgorithm {
		for seed, want := range seeds {
			c, err := New(name, seed)
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(c.none[:c.size]); got != want {
				t.Errorf("%s of %q: got %s, want %s", name, seed, got, want)
			}
		}
	}
}

func TestHashedBytesAreTheEngines(t *testing.T) {
	var want struct {
		Seed     string `json:"cbor_of_none_seed_0"`
		Salted   string `json:"cbor_first_block_seed0_T0_32_salt_abc"`
		Unsalted string `json:"cbor_first_block_seed0_T0_32_no_extra"`
	}
	readJSON(t, "cbor_examples.json", &want)
	c, err := New("sha256_cbor", "0")
	if err != nil {
		t.Fatal(err)
	}
	tokens := (&goldenCase{Tokens: [][2]uint64{{1000, 1032}}}).prompt().Tokens
	salt := []extra{{kind: extraSalt, a: "abc"}}
	for _, row := range []struct {
		what, want string
		got        []byte
	}{
		{"seed", want.Seed, c.serial.text(nil, "0")},
		{"block", want.Unsalted, c.serial.block(nil, c.none[:], tokens, nil, false)},
		{"salted block", want.Salted, c.serial.block(nil, c.none[:], tokens, salt, false)},
	} {
		if got := hex.EncodeToString(row.got); got != row.want {
			t.Errorf("%s: got %s, want %s", row.what, got, row.want)
		}
	}
}

// The table of vLLM at about 0.27, when extras had no tags.
func TestUntaggedHashesAreThoseOfEarlierEngines(t *testing.T) {
	for _, row := range []struct {
		algo, seed             string
		block1, block2, salted uint64
	}{
		{"sha256_cbor", "", 8866452693264111234, 11728165007794813589, 3966403684325025667},
		{"sha256_cbor", "0", 3236607068019569386, 11873484407590671439, 17897465047670570311},
		{"sha256_cbor", "42", 16300212363532267629, 5538680374840323803, 640749625781500790},
		{"sha256", "", 1403909460543360175, 17794575114832154523, 15042834843469024297},
		{"sha256", "0", 7536218907325174565, 13179737419869635554, 0},
		{"sha256", "42", 4508471921923631364, 16172548540998897539, 0},
		{"xxhash_cbor", "0", 882618318818381833, 8121416221398177096, 0},
		{"xxhash_cbor", "42", 14255326629130133946, 0, 0},
	} {
		tagged, err := New(row.algo, row.seed)
		if err != nil {
			t.Fatal(err)
		}
		p := (&goldenCase{Tokens: [][2]uint64{{1, 17}, {1000, 1016}}}).prompt()
		got := tagged.Append(nil, p, 16)
		if len(got) != 2 || got[0] != row.block1 || (row.block2 != 0 && got[1] != row.block2) {
			t.Errorf("%s, seed %q: got %v, want %d and %d", row.algo, row.seed, got, row.block1, row.block2)
		}
		p.Salt = "salt"
		if got := tagged.Untagged().Append(nil, p, 16); row.salted != 0 && got[0] != row.salted {
			t.Errorf("%s, seed %q, salted: got %v, want %d", row.algo, row.seed, got[0], row.salted)
		}
		if tagged.Append(nil, p, 16)[0] == row.salted {
			t.Errorf("%s, seed %q: the tag of the salt changes nothing", row.algo, row.seed)
		}
	}
}

func TestPickleIsPythons(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here; golden.json holds what it says")
	}
	text := rapid.StringN(2, 40, 80) // one character is one object in Python, wherever it occurs
	draw := rapid.Custom(func(t *rapid.T) goldenCase {
		g := goldenCase{Algo: "sha256", Seed: text.Draw(t, "seed"), Untagged: rapid.Bool().Draw(t, "untagged"), BlockSize: rapid.IntRange(1, 40).Draw(t, "block size")}
		for range rapid.IntRange(0, 5).Draw(t, "spans") {
			first := rapid.Uint64Range(0, 1<<32-30).Draw(t, "first")
			g.Tokens = append(g.Tokens, [2]uint64{first, first + rapid.Uint64Range(0, 30).Draw(t, "tokens")})
		}
		g.Salt = rapid.OneOf(rapid.Just(""), text).Draw(t, "salt")
		if g.LoRA = rapid.OneOf(rapid.Just(""), text).Draw(t, "lora"); g.LoRA != "" {
			g.LoRAPath = text.Draw(t, "path")
		}
		at := 0
		for range rapid.IntRange(0, 5).Draw(t, "media") {
			at += rapid.IntRange(0, 20).Draw(t, "gap")
			length := rapid.IntRange(1, 20).Draw(t, "length")
			g.Media = append(g.Media, [3]any{text.Draw(t, "id"), float64(at), float64(length)})
			at += length
		}
		return g
	})
	cases := make([]goldenCase, 300)
	for i := range cases {
		cases[i] = draw.Example(i)
	}
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	script := exec.CommandContext(t.Context(), python, "testdata/golden.py")
	script.Stdin, script.Stderr = bytes.NewReader(in), os.Stderr
	out, err := script.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &cases); err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		cases[i].check(t, strconv.Itoa(i))
	}
}

func TestWireHashIsTheEndOfTheDigest(t *testing.T) {
	for name := range algorithms {
		c, err := New(name, "7")
		if err != nil {
			t.Fatal(err)
		}
		p := (&goldenCase{Tokens: [][2]uint64{{1, 100}}}).prompt()
		digests := c.AppendDigests(nil, p, 16)
		for i, h := range c.Append(nil, p, 16) {
			end := digests[(i+1)*c.DigestSize()-8 : (i+1)*c.DigestSize()]
			if binary.BigEndian.Uint64(end) != h {
				t.Errorf("%s: block %d is %x, its digest ends in %x", name, i, h, end)
			}
		}
	}
}
