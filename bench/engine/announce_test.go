package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/proxy/engine/kvevent"
	"kvca/state/kvindex"
	"kvca/state/virtualtime"
)

// announcing returns a server that has not been started, whose batches go to hear.
func announcing(cfg ServerConfig, hear func(*kvevent.Batch)) *Server {
	cfg.Events.Endpoint = "tcp://*:0"
	s := NewServer(cfg)
	var d kvevent.Decoder
	s.announcer.send = func(payload []byte) {
		b, err := d.Decode(payload)
		if err != nil {
			b = &kvevent.Batch{Problem: err.Error()}
		}
		hear(b)
	}
	return s
}

// tiny is a server's engine of a few blocks, so that much is evicted.
func tiny(blocks int) Profile {
	return with(flat, func(p *Profile) { p.KVTokens, p.MaxBatchedTokens = blocks*p.BlockTokens, 24 })
}

// hear applies a batch as a subscriber does.
func (h holding) hear(t interface{ Errorf(string, ...any) }, b *kvevent.Batch) {
	if b.Damaged+b.Skipped > 0 || b.Problem != "" || len(b.Events) == 0 {
		t.Errorf("a batch of %d events, %d damaged, %d skipped: %s", len(b.Events), b.Damaged, b.Skipped, b.Problem)
	}
	for _, ev := range b.Events {
		c := Change{Hashes: ev.Hashes}
		switch ev.Kind {
		case kvevent.Stored:
			c = Change{Kind: Stored, Hashes: ev.Stored.Hashes}
		case kvevent.Removed:
			c.Kind = Removed
		case kvevent.Cleared:
			c.Kind = Cleared
		}
		h.apply(t, []Change{c})
	}
}

// asked submits a prompt to a server's engine.
func asked(s *Server, id uint64, now time.Duration, w wish) {
	j := s.newJob(0, w)
	j.req.ID = id
	s.driver.engine.Submit(now, j.req)
}

// wishes are prompts that share beginnings, of two models and two tenants.
func wishes(t *rapid.T) wish {
	text := words(rapid.IntRange(1, 20).Draw(t, "length"), uint64(rapid.IntRange(1, 3).Draw(t, "family")))
	w := wish{
		model: rapid.SampledFrom([]string{"sim", "sim", "tuned"}).Draw(t, "model"), salt: rapid.SampledFrom([]string{"", "", "s"}).Draw(t, "salt"),
		prompt: tokens(nil).appendText(text), maxTokens: rapid.IntRange(1, 12).Draw(t, "answer"),
	}
	if rapid.Bool().Draw(t, "completion") {
		w.prefix = text[:len(text)-rapid.IntRange(0, 3).Draw(t, "part")]
		w.prompt = tokens(nil).appendText(w.prefix)
	}
	return w
}

// Whoever replays a server's batches knows its cache, and what each block is made of.
func TestBatchesTellWhatIsCached(t *testing.T) {
	for _, form := range []string{"vllm", "vllm-digests", "vllm-array-6", "vllm-array-7", "vllm-array-8", "vllm-array-9", "vllm-array-10", "vllm-array-12", "sglang"} {
		t.Run(form, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				known := holding{}
				cfg := ServerConfig{Profile: tiny(rapid.IntRange(10, 30).Draw(rt, "blocks")), Models: []string{"tuned"}}
				cfg.Events = Events{Form: form, OneCopy: rapid.Bool().Draw(rt, "one copy")}
				s := announcing(cfg, func(b *kvevent.Batch) { known.hear(rt, b) })
				e, now := s.driver.engine, time.Duration(0)
				for id := range uint64(rapid.IntRange(1, 20).Draw(rt, "requests")) {
					asked(s, id, now, wishes(rt))
					now += time.Duration(rapid.IntRange(0, 150).Draw(rt, "gap")) * time.Millisecond
					e.Advance(now, func(Event) {})
					if rapid.IntRange(0, 9).Draw(rt, "clear") == 0 {
						e.Clear()
					}
					heard := maps.Clone(known)
					heard.apply(rt, e.journal.changes) // what the running step has not told yet
					if want := contents(e.pool); !maps.Equal(heard, want) {
						rt.Errorf("heard of %v, cached is %v", heard, want)
					}
				}
			})
		})
	}
}

// A block's name follows from what is said of it, so nothing of what makes its identity is missing or wrong.
func TestBatchesTellWhatBlocksAreMadeOf(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := ServerConfig{Profile: tiny(rapid.IntRange(10, 30).Draw(rt, "blocks")), Models: []string{"tuned"}, Events: Events{Rank: 3}}
		s := announcing(cfg, func(b *kvevent.Batch) {
			if !b.HasRank || b.Rank != 3 || b.Time <= 0 {
				rt.Errorf("rank %d at %v", b.Rank, b.Time)
			}
			for _, ev := range b.Events {
				checkIdentity(rt, &ev)
			}
		})
		for id := range uint64(rapid.IntRange(1, 10).Draw(rt, "requests")) {
			asked(s, id, 0, wishes(rt))
		}
		drain(s.driver.engine)
	})
}

func checkIdentity(t *rapid.T, ev *kvevent.Event) {
	if ev.Kind == kvevent.Cleared {
		return
	}
	if ev.Tier != kvindex.GPU || ev.Group != 0 || ev.Remote {
		t.Errorf("blocks of group %d in tier %v", ev.Group, ev.Tier)
	}
	if ev.Kind == kvevent.Removed {
		if len(ev.Hashes) != 1 {
			t.Errorf("%d blocks removed by one event, an engine has one for each", len(ev.Hashes))
		}
		return
	}
	st := &ev.Stored
	before := st.Parent
	if model := st.LoRA; !st.HasParent {
		if model == "" {
			model = "sim"
		}
		before = root(model, st.Salt)
	}
	if got := tokens(st.Tokens).chain(before, st.BlockSize); !slices.Equal(got, st.Hashes) || ev.SpecKind != specKind {
		t.Errorf("blocks %x are made of others, %x", st.Hashes, got)
	}
}

func TestOnlyKnownFormsOfEventsAreTaken(t *testing.T) {
	for form, ok := range map[string]bool{
		"": true, "vllm": true, "vllm-digests": true, "vllm-array-9": true, "vllm-array-9-digests": true, "sglang": true,
		"vllm-array-11": false, "vllm-array-": false, "-digests": false, "sglang-digests": false, "trt": false,
	} {
		if _, err := (Events{Form: form}).form(); (err == nil) != ok {
			t.Errorf("form %q: %v", form, err)
		}
	}
}

// batches collects what a running server announces, in kinds and sizes.
type batches struct{ list []string }

func (b *batches) hear(got *kvevent.Batch) {
	text := ""
	for _, ev := range got.Events {
		n := len(ev.Hashes) + len(ev.Stored.Hashes)
		text += fmt.Sprintf("%v %d;", ev.Kind, n)
	}
	b.list = append(b.list, text)
}

func (b *batches) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	if !slices.Equal(b.list, want) {
		t.Errorf("%s: announced %q, want %q", when, b.list, want)
	}
	b.list = nil
}

func TestACacheIsResetOnlyWhileIdle(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var heard batches
		s := announcing(ServerConfig{}, heard.hear)
		s.Start(t.Context())
		defer s.Close()
		reset := func() any { return object(t, ask(t, s, "/reset_prefix_cache", ""))["success"] }
		prompt := m{"prompt": words(40, 1), "max_tokens": 1}

		object(t, ask(t, s, "/v1/completions", prompt))
		heard.expect(t, "a prompt of 40 tokens", "BlockStored 2;")
		busy := make(chan struct{})
		go func() {
			defer close(busy)
			object(t, ask(t, s, "/v1/completions", m{"prompt": "x", "max_tokens": 10}))
		}()
		time.Sleep(30 * time.Millisecond)
		if reset() != false {
			t.Error("a busy engine was reset")
		}
		<-busy
		heard.expect(t, "a busy engine")

		for range 2 {
			if reset() != true {
				t.Error("an idle engine was not reset")
			}
		}
		time.Sleep(time.Hour)
		heard.expect(t, "an idle engine after a reset")
		got := object(t, ask(t, s, "/v1/completions", prompt))
		heard.expect(t, "the next request", "AllBlocksCleared 0;AllBlocksCleared 0;BlockStored 2;")
		if n := dig(t, got, "usage", "prompt_tokens_details", "cached_tokens"); n != 0.0 {
			t.Errorf("%v tokens were still cached", n)
		}
	})
}

// What the answers count as cached is what the announced blocks promise, at most all but the last token.
func TestUsageCountsWhatTheCacheHad(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var heard batches
		s := announcing(ServerConfig{}, heard.hear)
		s.Start(t.Context())
		defer s.Close()
		for i, c := range []struct {
			tokens, cached int
			told           []string
		}{
			{100, 0, []string{"BlockStored 6;"}},
			{100, 96, nil},
			{96, 80, []string{"BlockStored 1;"}}, // the last block is computed again, and stored a second time
			{96, 80, []string{"BlockStored 1;"}},
			{120, 96, []string{"BlockStored 1;"}},
			{120, 112, nil},
			{-40, 0, []string{"BlockStored 2;"}}, // asks for the prompt's probabilities: everything is computed
			{40, 32, nil},
		} {
			body := m{"prompt": words(max(c.tokens, -c.tokens), 1), "max_tokens": 1}
			if c.tokens < 0 {
				body["prompt_logprobs"] = 1
			}
			got := object(t, ask(t, s, "/v1/completions", body))
			if n := dig(t, got, "usage", "prompt_tokens_details", "cached_tokens"); n != float64(c.cached) {
				t.Errorf("request %d: %v of %d tokens cached, want %d", i, n, c.tokens, c.cached)
			}
			heard.expect(t, fmt.Sprintf("request %d", i), c.told...)
		}
	})
}

// An answer's blocks are announced as they fill up, and a follow-up finds them.
func TestAFollowUpHitsAnnouncedBlocks(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		known := holding{}
		s := announcing(ServerConfig{}, func(b *kvevent.Batch) { known.hear(t, b) })
		s.Start(t.Context())
		defer s.Close()
		first := chatBody(user(words(40, 1)))
		first["max_tokens"] = 100
		text := dig(t, object(t, ask(t, s, "/v1/chat/completions", first)), "choices", 0, "message", "content")
		next := chatBody(user(words(40, 1)), m{"role": "assistant", "content": text}, user("and?"))
		p, err := ChatPrompt(jsonOf(t, next))
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, hash := range p.Blocks(16) {
			if known[hash] == 0 {
				break
			}
			held += 16
		}
		got := dig(t, object(t, ask(t, s, "/v1/chat/completions", next)), "usage", "prompt_tokens_details", "cached_tokens")
		if got != float64(held) || held < 128 {
			t.Errorf("%v tokens cached, %d announced", got, held)
		}
	})
}
