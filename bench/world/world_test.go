package world

import (
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvca/bench/engine"
	"kvca/bench/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worst is how far apart hit rates of the short workload may be. In ten runs the differences had a standard deviation of 0.006 with
// cost on three nodes and of 0.014 with round-robin on one, 0.022 at the most: this is four of the greater one, while the policies
// are 0.29 apart. `bench/run world` holds a workload with less chance in it to 0.02.
const worst = 0.06

// short is a workload of a few seconds.
func short(t *testing.T) Config {
	t.Helper()
	c := Default(1)
	c.Dir = t.TempDir()
	c.Kvca = filepath.Join(c.Dir, "kvca")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", c.Kvca, "kvca/cmd/kvca").CombinedOutput(); err != nil {
		t.Fatalf("build kvca: %v\n%s", err, out)
	}
	c.Speedup, c.Profile.KVTokens = 10, 6000
	c.Workload = trace.TenantOptions{
		Seed: 1, Tenants: 12, SystemTokens: 500, Rate: 4, Duration: 30 * time.Second, Turns: 3, Think: 3 * time.Second,
		QuestionTokens: 150, AnswerTokens: 20,
	}
	return c
}

func TestSimulatorAgreesWithProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds of real time")
	}
	c := short(t)
	for _, what := range []Case{{"cost", 3}, {"round-robin", 1}} {
		began := time.Now()
		o, err := c.Run(t.Context(), what)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s on %d nodes: real %.4f, simulated %.4f ±%.4f, difference %+.4f, late %v, %d requests in %v", what.Policy, what.Nodes,
			o.Real.HitRate, o.Simulated.HitRate, o.Spread, o.Difference(), o.Late, o.Requests, time.Since(began))
		if o.TooSlow() {
			t.Skipf("the machine is too slow for the speed-up: turns were sent %v late", o.Late)
		}
		if math.Abs(o.Difference()) > worst {
			t.Errorf("%s on %d nodes hits %.4f, simulated %.4f", what.Policy, what.Nodes, o.Real.HitRate, o.Simulated.HitRate)
		}
	}
}

// A conversation's trace is the one that it was made of, but for the frames of messages.
func TestConversationsHaveTheSizesOfTheirTrace(t *testing.T) {
	o := Default(1).Workload
	sessions := trace.Tenants(o).Sessions
	const frames = 14 // five tokens a message, four that ask for the answer
	for i, c := range conversations(o, 1<<20) {
		if len(c.turns) != len(sessions[i].Requests) || c.start != sessions[i].Start {
			t.Fatalf("conversation %d has %d turns from %v on, its session %d from %v on", i, len(c.turns), c.start, len(sessions[i].Requests), sessions[i].Start)
		}
		first := sessions[i].Requests[0]
		b, err := body([]message{{"system", c.system}, {"user", c.turns[0].question}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := engine.ChatPrompt(b)
		if err != nil {
			t.Fatal(err)
		}
		if p.Tokens() != first.PromptTokens+frames {
			t.Fatalf("conversation %d begins with %d tokens, its session with %d", i, p.Tokens(), first.PromptTokens)
		}
	}
}

// Names are equal as far as prompts are, which is what the caches of both sides go by.
func TestTraceRepeatsWhatFollowUpsRepeat(t *testing.T) {
	said := []message{{"system", strings.Repeat("once ", 300)}, {"user", "why?"}}
	var r recording
	r.talks = []talk{{}}
	for _, text := range []string{strings.Repeat("so it ", 200), "no more"} {
		b, err := body(said, 9)
		if err != nil {
			t.Fatal(err)
		}
		p, err := engine.ChatPrompt(b)
		if err != nil {
			t.Fatal(err)
		}
		r.talks[0].exchanges = append(r.talks[0].exchanges, exchange{answer: answer{text: text, prompt: p.Tokens(), output: 9}, body: b})
		said = append(said, message{"assistant", text}, message{"user", "and?"})
	}
	tr, err := r.trace()
	if err != nil {
		t.Fatal(err)
	}
	a, b := tr.Sessions[0].Requests[0], tr.Sessions[0].Requests[1]
	if a.After != -1 || a.FollowUp || b.After != 0 || !b.FollowUp {
		t.Errorf("the first waits for %d, the second for %d; follow-ups: %v, %v", a.After, b.After, a.FollowUp, b.FollowUp)
	}
	whole := append(a.Names[:len(a.Names):len(a.Names)], a.Answer...)
	if len(a.Answer) == 0 || len(b.Names) < len(whole) {
		t.Fatalf("%d blocks and %d of the answer, then %d", len(a.Names), len(a.Answer), len(b.Names))
	}
	for i := range whole {
		if whole[i] != b.Names[i] {
			t.Errorf("block %d of %d has another name in the follow-up", i, len(whole))
		}
	}
	for i := range a.Marks {
		if a.Marks[i] != b.Marks[i] {
			t.Errorf("mark %d is %v, then %v", i, a.Marks[i], b.Marks[i])
		}
	}
	r.talks[0].exchanges[1].prompt++
	if _, err := r.trace(); err == nil {
		t.Error("a count that the engine did not make was accepted")
	}
}

func TestStreamIsReadToItsEnd(t *testing.T) {
	const events = `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}

data: {"choices":[{"delta":{"content":"a b"}}]}

data: {"choices":[{"delta":{"content":" c"}}]}

`
	const usage = `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}

`
	const end = "data: [DONE]\n\n"
	a, err := read(strings.NewReader(events+usage+end), time.Now())
	if err != nil || a.text != "a b c" || a.prompt != 9 || a.output != 2 || a.cached != 4 || a.first <= 0 {
		t.Errorf("answer %+v, %v", a, err)
	}
	for _, cut := range []string{events, events + end, events + usage} {
		if _, err := read(strings.NewReader(cut), time.Now()); !errors.Is(err, errCutOff) {
			t.Errorf("%q: %v", cut, err)
		}
	}
}

// Which request comes first is chance on both sides, and nothing else is changed.
func TestRestlessTraceIsLateAndTheSame(t *testing.T) {
	o := Default(1).Workload
	tr := trace.Tenants(o)
	late := []time.Duration{time.Millisecond, 9 * time.Millisecond}
	a, b := restless(tr, late, 1), restless(tr, late, 2)
	differ := 0
	for i, s := range tr.Sessions {
		for j, r := range s.Requests {
			x, y := a.Sessions[i].Requests[j], b.Sessions[i].Requests[j]
			if by := x.Think - r.Think; by != late[0] && by != late[1] {
				t.Fatalf("turn %d of conversation %d is %v late", j, i, by)
			}
			if x.Think != y.Think {
				differ++
			}
			if x.PromptTokens != r.PromptTokens || len(x.Names) != len(r.Names) || x.After != r.After {
				t.Fatalf("turn %d of conversation %d is another", j, i)
			}
		}
	}
	if differ == 0 {
		t.Error("two seeds have the same delays")
	}
}
