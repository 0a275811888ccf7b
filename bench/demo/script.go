package demo

import (
	"math/rand/v2"
	"time"

	"kvca/bench/load"
)

// Span is a range that values are drawn from, both ends included.
type Span struct{ Min, Max int }

func (s Span) draw(r *rand.Rand) int { return s.Min + r.IntN(s.Max-s.Min+1) }

// Script says what conversations are like. It is a value: two players may have
// the same.
type Script struct {
	// Model is what requests ask for.
	Model string
	// Seed changes everything that is said.
	Seed uint64

	// Tenants is how many system prompts there are; each conversation has one.
	Tenants int
	// SystemBytes is the length of a system prompt.
	SystemBytes int

	// Turns is how many questions a conversation has.
	Turns Span
	// QuestionBytes is the length of a question.
	QuestionBytes Span
	// DocumentEvery is how many conversations there are for one that begins with
	// a document; 0 for none.
	DocumentEvery int
	// DocumentBytes is the length of a document.
	DocumentBytes Span
	// ThinkMillis is how long a user reads and types before the next question. No
	// turn follows at once, so that a gateway that answers in no time is not sent
	// an endless loop.
	ThinkMillis Span
}

// DefaultScript is what the demo says unless told otherwise: chats of a few
// turns, half of them about a document.
func DefaultScript(model string, seed uint64) Script {
	return Script{
		Model: model, Seed: seed,
		Tenants: 5, SystemBytes: 2000,
		Turns: Span{3, 9}, QuestionBytes: Span{1000, 2000},
		DocumentEvery: 2, DocumentBytes: Span{8_000, 32_000},
		ThinkMillis: Span{400, 1600},
	}
}

// Seeds of one script's random numbers must not meet: conversations have their
// session in the high half, tenants have a half of their own.
const tenantSeeds = 1 << 63

func (s *Script) random(session, n int) *rand.Rand {
	return rand.New(rand.NewPCG(s.Seed, uint64(session)<<32|uint64(n)))
}

// system is the system prompt of a tenant.
func (s *Script) system(tenant int) string {
	return load.Text(rand.New(rand.NewPCG(s.Seed, tenantSeeds|uint64(tenant))), s.SystemBytes)
}

func (s *Script) think(r *rand.Rand) time.Duration {
	return time.Duration(s.ThinkMillis.draw(r)) * time.Millisecond
}
