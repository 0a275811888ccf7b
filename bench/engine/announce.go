package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kvca/bench/kvencode"
	"kvca/proxy/engine/kvevent"
)

// Events says how a server announces what its cache holds: what --kv-events-config says to vLLM's.
type Events struct {
	// Endpoint is where batches are published. One with a * for the host, as tcp://*:5557, is bound; any other is connected to, by
	// vLLM's rule, unless Bind says otherwise. Port 0 takes a free one; see Server.EventSockets. Empty: no events.
	Endpoint string
	// Bind binds Endpoint whatever it looks like: tcp://127.0.0.1:0 keeps a test to itself, which * would not.
	Bind bool
	// Replay is where batches can be asked for again; it is always bound. Empty: nowhere, so what a subscriber misses is lost.
	Replay string
	// Topic goes before each batch; empty by default, as in vLLM.
	Topic string
	// Buffer is how many batches can be replayed; 10,000 by default, as in vLLM.
	Buffer int
	// OldReplay leaves the topic out of replies, as vLLM did up to 0.25 and SGLang does.
	OldReplay bool
	// Form is how events are written: "vllm" by default, as since 0.24; "vllm-array-6", -7, -8, -9, -10 and -12 as before; "sglang".
	// "-digests" after one of vLLM's writes whole digests instead of 64-bit numbers.
	Form string
	// Rank is the data-parallel rank that the batches are of.
	Rank int
	// OneCopy gives a name only to the first copy of a content that was computed more than once. By default each copy is stored
	// and removed, as in vLLM.
	OneCopy bool
}

func (e Events) on() bool { return e.Endpoint != "" }

// form finds out how events are to be written.
func (e Events) form() (kvencode.Form, error) {
	name, digests := strings.CutSuffix(e.Form, "-digests")
	form := kvencode.VLLM()
	switch array, ok := strings.CutPrefix(name, "vllm-array-"); {
	case name == "" && !digests, name == "vllm":
	case name == "sglang" && !digests:
		form = kvencode.SGLang()
	case ok:
		n, err := strconv.Atoi(array)
		if err != nil || n < 6 || n > 12 || n == 11 {
			return form, fmt.Errorf("form of events %q: an array has 6, 7, 8, 9, 10 or 12 elements", e.Form)
		}
		form = kvencode.VLLMArray(n)
	default:
		return form, fmt.Errorf("form of events %q: want vllm, vllm-array-6 to -12, with -digests or without, or sglang", e.Form)
	}
	if digests {
		form = form.Digests()
	}
	return form, nil
}

// origin is what the server knows of a request and the engine does not: what its blocks are made of.
type origin struct {
	ids           tokens // of prompt and answer
	salt, adapter string
}

// announcer turns changes of the cache into batches. It is called with the engine at rest.
type announcer struct {
	form    kvencode.Form
	rank    int
	unit    int
	send    func(payload []byte) // nil: nobody can hear
	batches uint64
	// Scratch space of tell.
	events []kvencode.Event
	buf    []byte
}

// tell publishes the changes of a step.
func (a *announcer) tell(_ time.Duration, changes []Change) {
	if a.send == nil {
		return
	}
	a.events = a.events[:0]
	for _, c := range changes {
		a.add(c)
	}
	b := kvencode.Batch{Time: float64(time.Now().UnixMicro()) / 1e6, Rank: a.rank, HasRank: true, Events: a.events}
	a.batches++
	a.buf = kvencode.Append(a.buf[:0], a.form, &b)
	a.send(a.buf) // keeps none of it
	clear(a.events)
}

// What an engine with one kind of attention calls its memory and its only group.
const (
	medium   = "GPU"
	specKind = "full_attention"
)

// add writes a change as the events that an engine makes of it: one a run, one a removed block.
func (a *announcer) add(c Change) {
	switch c.Kind {
	case Stored:
		o := c.Ref.(*origin)
		a.events = append(a.events, kvencode.Event{
			Kind: kvevent.Stored, Hashes: c.Hashes, Parent: c.Parent, HasParent: c.HasParent, BlockSize: a.unit, Medium: medium,
			SpecKind: specKind, Tokens: o.ids[c.First*a.unit : (c.First+len(c.Hashes))*a.unit], LoRA: o.adapter, Salt: o.salt,
		})
	case Removed:
		for i := range c.Hashes {
			a.events = append(a.events, kvencode.Event{Kind: kvevent.Removed, Hashes: c.Hashes[i : i+1], Medium: medium})
		}
	case Cleared:
		a.events = append(a.events, kvencode.Event{Kind: kvevent.Cleared})
	}
}
