package trace

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var tenantOptions = rapid.Custom(func(t *rapid.T) TenantOptions {
	return TenantOptions{
		Seed:         rapid.Uint64().Draw(t, "seed"),
		Tenants:      rapid.IntRange(0, 30).Draw(t, "tenants"),
		SystemTokens: rapid.IntRange(1, 3000).Draw(t, "system"),
		Rate:         rapid.Float64Range(0, 2).Draw(t, "rate"), Duration: time.Minute,
		Turns:          rapid.Float64Range(0, 8).Draw(t, "turns"),
		QuestionTokens: rapid.IntRange(0, 500).Draw(t, "question"),
		AnswerTokens:   rapid.IntRange(0, 500).Draw(t, "answer"),
	}
})

func TestFollowUpRepeatsPromptAndAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		got := Tenants(tenantOptions.Draw(rt, "options"))
		sound(t, got)
		for _, s := range got.Sessions {
			for i, r := range s.Requests {
				if r.After != i-1 || r.FollowUp != (i > 0) || len(r.Marks) != 2*i+2 {
					rt.Fatalf("request %d: after %d, follow-up %v, %d marks", i, r.After, r.FollowUp, len(r.Marks))
				}
				if i == len(s.Requests)-1 {
					if r.Answer != nil {
						rt.Fatal("the last answer has names that nobody repeats")
					}
					break
				}
				next := s.Requests[i+1]
				if repeated := slices.Concat(r.Names, r.Answer); !slices.Equal(repeated, next.Names[:min(len(repeated), len(next.Names))]) {
					rt.Fatalf("request %d doesn't begin with the one before and its answer", i+1)
				}
				if next.Marks[len(r.Marks)].Tokens != r.PromptTokens+r.OutputTokens {
					rt.Fatalf("request %d marks the answer's end at %v", i+1, next.Marks[len(r.Marks)])
				}
			}
		}
	})
}

func TestGeneratedTraceDependsOnItsSeedOnly(t *testing.T) {
	for name, of := range map[string]func(seed uint64) *Trace{
		"tenants": func(seed uint64) *Trace {
			return Tenants(TenantOptions{Seed: seed, Rate: 1, Duration: time.Minute, SystemTokens: 300})
		},
		"ladder": func(seed uint64) *Trace {
			o := Ladder37
			o.Seed, o.Rate, o.Duration = seed, 2, time.Minute
			return Ladder(o)
		},
		"burst": func(seed uint64) *Trace {
			return Burst(BurstOptions{Background: TenantOptions{Seed: seed}, Requests: 5, Over: time.Second, PrefixTokens: 500, QuestionTokens: 300, OutputTokens: 1})
		},
	} {
		a, b, c := of(1), of(1), of(2)
		sound(t, a)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two traces of one seed differ", name)
		}
		if reflect.DeepEqual(a, c) || a.Requests() == 0 {
			t.Errorf("%s: two seeds give one trace of %d requests", name, a.Requests())
		}
	}
}

func TestRateMovesSessionsAndLeavesThemAsTheyAre(t *testing.T) {
	o := TenantOptions{Seed: 5, Tenants: 10, SystemTokens: 300, Rate: 1, Duration: time.Minute}
	slow := Tenants(o).Sessions
	o.Rate = 2
	fast := Tenants(o).Sessions
	if len(slow) < 40 || len(fast) < len(slow)*3/2 {
		t.Fatalf("%d sessions at 1/s, %d at 2/s", len(slow), len(fast))
	}
	for i := range slow {
		if !reflect.DeepEqual(slow[i].Requests, fast[i].Requests) || slow[i].Start <= fast[i].Start {
			t.Fatalf("session %d isn't the same, only earlier", i)
		}
	}
}

func TestTenantsComeOutAsOrdered(t *testing.T) {
	o := TenantWorkloads[1]
	o.Seed, o.Duration = 1, time.Hour
	got := Tenants(o)
	of, thinks, questions := map[uint64]int{}, time.Duration(0), 0
	for _, s := range got.Sessions {
		of[s.Requests[0].Marks[0].Name]++
		for i, r := range s.Requests {
			thinks += r.Think
			questions += r.PromptTokens - r.Marks[2*i].Tokens
		}
	}
	s := Stats(got)
	harmonic := 0.0
	for k := range o.Tenants {
		harmonic += 1 / float64(k+1)
	}
	largest := 0
	for _, n := range of {
		largest = max(largest, n)
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"sessions a second", float64(s.Sessions) / 3600, 3},
		{"turns", float64(s.Requests) / float64(s.Sessions), 5},
		{"share of the largest tenant", float64(largest) / float64(s.Sessions), 1 / harmonic},
		{"think", thinks.Seconds() / float64(s.FollowUps), 20},
		{"question", float64(questions) / float64(s.Requests), 400},
		{"answer", s.Output.Mean, 300},
		{"median answer", float64(s.Output.P50), 300 * math.Exp(-.5)},
	} {
		if math.Abs(c.got/c.want-1) > .05 {
			t.Errorf("%s %.4g, want %.4g", c.what, c.got, c.want)
		}
	}
	if len(of) != o.Tenants {
		t.Errorf("%d system prompts, want %d", len(of), o.Tenants)
	}
}

func TestLadderAsksEachPromptAsOften(t *testing.T) {
	for _, o := range []LadderOptions{Ladder37, Ladder73} {
		o.Seed, o.Rate, o.Duration = 1, 30, time.Minute
		got := Ladder(o)
		sound(t, got)
		prompts, prefixes := map[uint64]int{}, map[uint64]int{}
		for _, s := range got.Sessions {
			r := s.Requests[0]
			if r.PromptTokens != o.PrefixTokens+o.QuestionTokens || r.OutputTokens != 1000 || r.FollowUp {
				t.Fatalf("%s: %d and %d tokens, follow-up %v", o.Name, r.PromptTokens, r.OutputTokens, r.FollowUp)
			}
			prefixes[r.Marks[0].Name]++
			prompts[r.Marks[1].Name]++
		}
		if len(prefixes) != o.Groups || len(prompts) != o.Groups*o.Questions {
			t.Errorf("%s: %d prefixes and %d prompts", o.Name, len(prefixes), len(prompts))
		}
		for _, n := range prompts {
			if each := got.Requests() / len(prompts); n < each || n > each+1 {
				t.Errorf("%s: a prompt is asked %d times, want %d or one more", o.Name, n, each)
			}
		}
		o.Questions = 0
		if s := Stats(Ladder(o)); s.Units < s.Requests*(o.QuestionTokens/UnitTokens) {
			t.Errorf("%s: %d units, but every question is new", o.Name, s.Units)
		}
	}
}

func TestClimbBeginsEachStageWithTheSamePrompts(t *testing.T) {
	for _, c := range []struct {
		o      LadderOptions
		stages []Stage
	}{{Ladder37, Stages37}, {Ladder73, Stages73}} {
		c.o.Seed = 1
		got := Climb(c.o, c.stages)
		sound(t, got)
		ends := append(slices.Clone(got.Stages), len(got.Sessions))
		from, answers := 0, map[uint64]bool{}
		for i, stage := range c.stages {
			list := got.Sessions[from:ends[i]]
			if n := int(stage.Rate * stage.Duration.Seconds()); len(list) != n || list[n-1].Start != stage.Duration || list[0].Start <= 0 {
				t.Errorf("stage %d: %d requests from %v to %v, want %d to %v", i, len(list), list[0].Start, list[len(list)-1].Start, n, stage.Duration)
			}
			for k, s := range list {
				r, first := s.Requests[0], got.Sessions[min(k, ends[0]-1)].Requests[0]
				if k < ends[0] && !slices.Equal(r.Names, first.Names) {
					t.Fatalf("stage %d: prompt %d is not that of the first", i, k)
				}
				if k > 0 && s.Start < list[k-1].Start {
					t.Fatalf("stage %d: request %d comes before the one in front of it", i, k)
				}
				if answers[r.Answer[0]] || len(r.Answer) != (r.PromptTokens+r.OutputTokens)/UnitTokens-len(r.Names) {
					t.Fatalf("stage %d: answer of %d units, or one that has been given", i, len(r.Answer))
				}
				answers[r.Answer[0]] = true
			}
			from = ends[i]
		}
	}
}

func TestBurstSharesItsPrefixAndNothingElse(t *testing.T) {
	background := TenantOptions{Seed: 1, Tenants: 3, SystemTokens: 1000, Rate: 2, Duration: time.Minute}
	o := BurstOptions{
		Name: "burst", Background: background, At: 30 * time.Second, Over: time.Second, Requests: 50,
		PrefixTokens: 1280, QuestionTokens: 256, OutputTokens: 100,
	}
	got := Burst(o)
	sound(t, got)
	steady := Tenants(background)
	if got.Requests() != steady.Requests()+50 {
		t.Fatalf("%d requests, of which %d are background", got.Requests(), steady.Requests())
	}
	if both, alone := Stats(got).Units, Stats(steady).Units; both-alone != 10+50*2 {
		t.Errorf("the burst has %d units, want 110", both-alone)
	}
	within := 0
	for _, s := range got.Sessions {
		if r := s.Requests[0]; r.PromptTokens == 1280+256 && s.Start >= o.At && s.Start < o.At+o.Over {
			within++
		}
	}
	if within < 50 {
		t.Errorf("%d requests of the burst come in its time, want 50", within)
	}
}

// Options that say nothing useful give a small trace, not a panic.
func TestEmptyOptionsGiveAnEmptyTrace(t *testing.T) {
	for _, got := range []*Trace{
		Ladder(LadderOptions{}), Tenants(TenantOptions{}), Burst(BurstOptions{}), Tenants(TenantOptions{Rate: -1, Duration: time.Minute}),
	} {
		if got.Requests() != 0 {
			t.Errorf("%d requests", got.Requests())
		}
	}
}
