package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// script drives a machine by lines of text and records what it does.
//
// Inputs: "up", "down", "3" (live batch 3), "3x" (another batch 3), "r3" (batch 3 of
// the replay), "end", "fail", "lost", "void", "resync", "+2s", "expect". Payloads that begin
// with "bad" can't be read, with "clear" forget.
type script struct {
	t   *testing.T
	m   *machine
	now time.Duration
	did []string
	id  uint64
}

func newScript(t *testing.T, replay bool) *script {
	s := &script{t: t}
	c := &Config{Endpoint: "tcp://engine:5557", MaxPending: 2000}
	c.setDefaults()
	if replay {
		c.Replay = "tcp://engine:5657"
	}
	s.m = newMachine(c, s, 0)
	return s
}

func (s *script) apply(payload []byte) (outcome, error) {
	text := string(payload)
	s.did = append(s.did, text)
	switch {
	case strings.HasPrefix(text, "bad"):
		return damaged, errors.New("no batch")
	case strings.HasPrefix(text, "clear"):
		return cleared, nil
	}
	return taken, nil
}
func (s *script) reset(r Reason) { s.did = append(s.did, "reset:"+r.String()) }
func (s *script) setLive(b bool) {
	s.did = append(s.did, map[bool]string{true: "live", false: "dead"}[b])
}
func (s *script) ask(id, n uint64) { s.id = id; s.did = append(s.did, fmt.Sprint("ask:", n)) }
func (s *script) hangUp()          {}

func (s *script) play(line string) {
	for word := range strings.FieldsSeq(line) {
		s.word(word)
	}
}

func (s *script) word(w string) {
	m := s.m
	switch {
	case w == "up":
		m.connected(s.now)
	case w == "down":
		m.disconnected(s.now, errors.New("cut"))
	case w == "end":
		m.ended(s.now, s.id)
	case w == "fail":
		m.failed(s.now, s.id, errors.New("refused"))
	case w == "lost":
		m.lost(s.now)
	case w == "void":
		m.void()
	case w == "resync":
		m.resync()
	case w == "expect":
		m.silence.expect(s.now, 1, silentAfter)
	case w[0] == '+':
		d, err := time.ParseDuration(w[1:])
		if err != nil {
			s.t.Fatal(err)
		}
		s.wait(d)
	default:
		s.batch(w)
	}
}

// wait lets time pass, with a tick at each deadline.
func (s *script) wait(d time.Duration) {
	until := s.now + d
	for range 1000 {
		next := s.m.deadline()
		if next == 0 || next > until {
			break
		}
		s.now = max(s.now, next)
		s.m.tick(s.now)
	}
	s.now = until
}

func (s *script) batch(w string) {
	rest, isReplay := strings.CutPrefix(w, "r")
	var seq uint64
	if _, err := fmt.Sscanf(strings.TrimLeft(rest, "abcdelr"), "%d", &seq); err != nil {
		s.t.Fatalf("word %q: %v", w, err)
	}
	b := newBatch(seq, []byte(rest))
	if isReplay {
		s.m.replayed(s.now, s.id, b)
		return
	}
	s.m.arrived(s.now, b)
}

type machineCase struct {
	name   string
	replay bool
	in     string
	want   string
	mode   mode
	doubt  string // part of the problem; empty: none
}

func (c machineCase) run(t *testing.T) {
	s := newScript(t, c.replay)
	s.play(c.in)
	if got := strings.Join(s.did, " "); got != c.want {
		t.Errorf("%s\n did %s\nwant %s", c.in, got, c.want)
	}
	if s.m.mode != c.mode {
		t.Errorf("%s: mode %d, want %d", c.in, s.m.mode, c.mode)
	}
	problem := s.m.problem()
	if (c.doubt == "") != (problem == "") || !strings.Contains(problem, c.doubt) {
		t.Errorf("%s: problem %q, want one with %q", c.in, problem, c.doubt)
	}
}

func TestWithReplaySocket(t *testing.T) {
	for _, c := range []machineCase{
		{
			"a new source takes all there is, then the live batches that waited", true,
			"up 2 r0 r1 3 r2 end 4", "ask:0 0 1 2 3 live 4", live, "",
		},
		{
			"an engine that has published nothing is live at once", true,
			"up end 0 1", "ask:0 live 0 1", live, "",
		},
		{
			"a live stream that lags behind the replay is skipped", true,
			"up r0 r1 r2 end 1 2 3", "ask:0 0 1 2 live 3", live, "",
		},
		{
			"a ring that wrapped is taken from where it begins", true,
			"up r70 r71 end 72", "ask:0 70 71 live 72", live, "began at batch 70",
		},
		{
			"a ring that wrapped and a clear leave nothing unknown", true,
			"up r70 rclear71 end", "ask:0 70 clear71 live", live, "",
		},
		{
			"the same batch after a reconnect continues", true,
			"up r0 r1 end down up r1 r2 end 3", "ask:0 0 1 live ask:1 2 3", live, "",
		},
		{
			"another batch under the same number is a restart", true,
			"up r0 r1 end down up r1x r0x r1x end 2x", "ask:0 0 1 live ask:1 dead reset:restart ask:0 0x 1x live 2x", live, "",
		},
		{
			"an engine that published less is a restart", true,
			"up r0 r1 end down up end r0x end 1x", "ask:0 0 1 live ask:1 dead reset:restart ask:0 0x live 1x", live, "",
		},
		{
			"a restart with higher numbers is found by the ring's content", true,
			"up r0 r1 end down up 8x r1x r0x r1x r2x r3x r4x r5x r6x r7x end 9x",
			"ask:0 0 1 live ask:1 dead reset:restart ask:0 0x 1x 2x 3x 4x 5x 6x 7x 8x live 9x", live, "",
		},
		{
			"a ring that no longer has the last batch can't be compared", true,
			"up r0 r1 end down up r5 r5 r6 end", "ask:0 0 1 live ask:1 dead reset:wrapped ask:0 5 6 live", live, "began at batch 5",
		},
		{
			"a gap is filled while live batches wait", true,
			"up r0 end 1 4 5 r2 r3 r4 end 6", "ask:0 0 live 1 ask:2 2 3 4 5 6", live, "",
		},
		{
			"a gap that the ring has wrapped over is a reset", true,
			"up r0 end 1 6 7 r4 r5 r6 end 8", "ask:0 0 live 1 ask:2 reset:gap 4 5 6 7 8", live, "batch 4 came, expected 2",
		},
		{
			"a gap of a number that was never published is a reset", true,
			"up r0 end 1 3 r3 end 4", "ask:0 0 live 1 ask:2 reset:gap 3 4", live, "batch 3 came, expected 2",
		},
		{
			"a gap of which the ring knows nothing is a reset", true,
			"up r0 end 1 3 end 4", "ask:0 0 live 1 ask:2 reset:gap 3 4", live, "batch 3 came, expected 2",
		},
		{
			"a batch that was lost after it was asked for the rest is asked for", true,
			"up r0 end down up r0 2 end r1 r2 end 3", "ask:0 0 live ask:0 ask:1 1 2 3", live, "",
		},
		{
			"pieces that the replay socket dropped are asked for again", true,
			"up r0 r1 r5 r2 r3 r4 r5 end 6", "ask:0 0 1 ask:2 2 3 4 5 live 6", live, "",
		},
		{
			"an end that was reached too early is not believed", true,
			"up r0 end 5 r1 r2 end r3 r4 r5 end 6", "ask:0 0 live ask:1 1 2 ask:3 3 4 5 6", live, "",
		},
		{
			"a second gap among those that waited is asked for too", true,
			"up r0 end 3 r1 5 r2 r3 end r4 r5 end 6", "ask:0 0 live ask:1 1 2 3 ask:4 4 5 6", live, "",
		},
		{
			"after a hole no replay begins for a while: the next gap is a reset", true,
			"up r0 end 2 end 4 5", "ask:0 0 live ask:1 reset:gap 2 reset:gap 4 5", live, "batch 4 came, expected 3",
		},
		{
			"a batch sent twice is skipped", true,
			"up end 0 1 1 2", "ask:0 live 0 1 2", live, "",
		},
		{
			"a number that falls is a restart behind a broker", true,
			"up end 0 1 2 0x r0x end 1x", "ask:0 live 0 1 2 dead reset:restart ask:0 0x live 1x", live, "",
		},
		{
			"what came before another number during a replay is left to it", true,
			"up 3 2 r0 r1 r2 r3 end 4", "ask:0 0 1 2 3 live 4", live, "",
		},
		{
			"a batch that can't be read resets; what follows counts", true,
			"up r0 end 1 bad2 3", "ask:0 0 live 1 bad2 reset:damaged 3", live, "batch 2 could not be read",
		},
		{
			"and so it does within a replay", true,
			"up r0 rbad1 r2 end 3", "ask:0 0 bad1 reset:damaged 2 live 3", live, "batch 1 could not be read",
		},
		{
			"a replay that fails three times is done without", true,
			"up 4 fail +1s fail +2s fail 5", "ask:0 ask:0 ask:0 4 live 5", live, "failed 3 times in a row (refused)",
		},
		{
			"a replay that says nothing for 3 s has failed", true,
			"up 4 +23s 5", "ask:0 ask:0 ask:0 4 live ask:0 ask:0 ask:0 5", live, "no answer in time",
		},
		{
			"a replay that breaks off goes on where it was", true,
			"up r0 r1 fail +1s r2 end 3", "ask:0 0 1 ask:2 2 live 3", live, "",
		},
		{
			"a replay without an end goes on where it was", true,
			"up r0 r1 +4s r2 end 3", "ask:0 0 1 ask:2 2 live 3", live, "",
		},
		{
			"a reconnect that can't be verified is a reset", true,
			"up r0 end down up fail +1s fail +1s fail 1", "ask:0 0 live ask:0 ask:0 ask:0 reset:restart 1", live, "failed 3 times",
		},
		{
			"a replay that verified and then broke for good leaves nothing to vouch for", true,
			"up r0 end down up r0 fail +1s fail +1s fail", "ask:0 0 live ask:0 ask:1 ask:1 reset:gap", live, "failed 3 times",
		},
		{
			"own losses are asked for", true,
			"up r0 end 1 lost r2 r3 end 4", "ask:0 0 live 1 ask:2 2 3 4", live, "",
		},
		{
			"own losses during a replay are asked for after it", true,
			"up r0 2 lost r1 end r3 r4 end 5", "ask:0 0 1 2 ask:3 3 4 live 5", live, "",
		},
		{
			"a connection that blinks changes nothing", true,
			"up r0 end down +4s up r0 end 1", "ask:0 0 live ask:0 1", live, "",
		},
		{
			"a socket that stays down takes all with it", true,
			"up r0 end down +6s", "ask:0 0 live dead reset:down", connecting, "no event socket at tcp://engine:5557 (cut)",
		},
		{
			"and all is asked for when it is back", true,
			"up r0 end down +6s up r0 r1 end", "ask:0 0 live dead reset:down ask:0 0 1 live", live, "",
		},
		{
			"a socket that never came says so", true,
			"+6s", "", connecting, "is the engine up",
		},
		{
			"what the engine was told to forget is forgotten", true,
			"up r0 end void 1", "ask:0 0 live reset:void 1", live, "",
		},
		{
			"a resync asks for all, and keeps what is known until it comes", true,
			"up r0 r1 end 2 resync +1ms 3 r1 r2 r3 end 4", "ask:0 0 1 live 2 ask:0 reset:resync 1 2 3 4", live, "began at batch 1",
		},
		{
			"a resync during a replay comes after it", true,
			"up r0 end 2 resync r1 end +1ms r0 r1 r2 end", "ask:0 0 live ask:1 1 2 ask:0 reset:resync 0 1 2", live, "",
		},
		{
			"a resync waits for the connection", true,
			"up r0 end down resync +1s up r0 end +1ms r0 end", "ask:0 0 live ask:0 ask:0 reset:resync 0", live, "",
		},
		{
			"a resync by a socket that fails leaves what is known", true,
			"up r0 end 1 resync +1ms fail +1s fail +1s fail", "ask:0 0 live 1 ask:0 ask:0 ask:0", live, "failed 3 times in a row (refused)",
		},
		{
			"three answers of other numbers are reason to wait", true,
			"up r0 end 1 9 r4 r7 r8 r11 r12 r20 +499ms r21 +1ms r22 r30",
			"ask:0 0 live 1 ask:2 reset:gap 4 ask:5 reset:gap 8 ask:9 reset:gap 12 ask:13 reset:gap 22", replaying, "expected 13",
		},
		{
			"six are a failure", true,
			"up r0 end 1 9 r1 r8 r1 r8 r1 r8 +500ms r1 r8 +1s r1 r8 +2s r1 r8 10",
			"ask:0 0 live 1 ask:2 ask:2 ask:2 ask:2 ask:2 ask:2 reset:gap 9 10", live,
			"failed 6 times in a row (its answers did not go on at batch 2",
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestWithoutReplaySocket(t *testing.T) {
	for _, c := range []machineCase{
		{"from the first batch on all is known", false, "up 0 1", "live 0 1", live, ""},
		{"what came before us is unknown", false, "up 7 8", "live 7 8", live, "began at batch 7"},
		{"a gap is a reset", false, "up 0 1 3 4", "live 0 1 reset:gap 3 4", live, "with replay_endpoint"},
		{"the next number after a reconnect continues", false, "up 0 down up 1", "live 0 1", live, ""},
		{"any other number after a reconnect is a restart", false, "up 0 1 down up 0x 1x", "live 0 1 reset:restart 0x 1x", live, ""},
		{"so is a higher one", false, "up 0 1 down up 9 10", "live 0 1 reset:restart 9 10", live, "began at batch 9"},
		{"a batch that comes late is not taken", false, "up 0 2 1 2x 3", "live 0 reset:gap 2 reset:restart 2x 3", live, "two engines"},
		{"a batch sent twice is skipped", false, "up 0 0 1", "live 0 1", live, ""},
		{"a batch that can't be read is a reset", false, "up 0 bad1 2", "live 0 bad1 reset:damaged 2", live, "batch 1 could not be read"},
		{"a resync is nothing", false, "up 0 resync +1m 1", "live 0 1", live, ""},
		{"own losses show in the next number", false, "up 0 lost 2", "live 0 reset:gap 2", live, "expected 1"},
		{"a socket that stays down takes all with it", false, "up 0 down +5s up 1", "live 0 dead reset:down live 1", live, "began at batch 1"},
	} {
		t.Run(c.name, c.run)
	}
}

func TestNumbersThatFallAgainAndAgainAreNotReplayedEachTime(t *testing.T) {
	s := newScript(t, true)
	s.play("up end 0")
	for range 20 {
		s.play("9 8x end")
	}
	if n := s.m.counts.replays; n > 3 {
		t.Errorf("%d replays at one moment, want at most 3", n)
	}
	if !strings.Contains(s.m.problem(), "do two engines publish") {
		t.Errorf("problem %q", s.m.problem())
	}
}

func TestAReplayThatComesAfterAllBeginsAnew(t *testing.T) {
	s := newScript(t, true)
	s.play("up 4 fail +500ms fail +1s fail 5")
	if !s.m.stale || s.m.mode != live {
		t.Fatalf("mode %d, stale %t, want live and stale", s.m.mode, s.m.stale)
	}
	s.did = nil
	s.play("+1s r2 6 r3 r4 r5 end 7")
	if got := strings.Join(s.did, " "); got != "ask:0 reset:resync 2 3 4 5 6 7" {
		t.Errorf("did %s", got)
	}
}

func TestReplaysThatFailBecomeRare(t *testing.T) {
	s := newScript(t, true)
	s.play("up +10m")
	asked := len(s.did) - 1 // but for live
	if asked < 3*600/45 || asked > 3*600/30 {
		t.Errorf("%d replays in ten minutes, want three each 30 to 45 s", asked)
	}
}

func TestAReplayOfOneBatchATimeEnds(t *testing.T) {
	s := newScript(t, true)
	s.play("up r0 end 1000")
	for seq := uint64(1); s.m.mode == replaying; seq++ {
		if seq > 10_000 {
			t.Fatal("never ends")
		}
		s.word(fmt.Sprint("r", seq))
		s.word(fmt.Sprint("r", seq+5))
	}
	if s.m.counts.replays > maxAsks+1 {
		t.Errorf("%d replays, want at most %d", s.m.counts.replays, maxAsks+1)
	}
}

// A replay socket that answers with other numbers than it was asked for, at once,
// must not be asked all the time.
func TestUselessAnswersBecomeRare(t *testing.T) {
	for name, answers := range map[string]func(next uint64) []uint64{
		"too high, with holes": func(next uint64) []uint64 { return []uint64{next + 3, next + 9} },
		"too low and high":     func(next uint64) []uint64 { return []uint64{0, next + 9} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, true)
			s.play("up r0 end")
			asked := s.m.counts.replays
			for seq, end := uint64(100), s.now+10*time.Second; s.now < end; seq++ {
				s.word(fmt.Sprint(100 * seq)) // another gap each time
				for range 200 {
					if !s.m.replay.active {
						break
					}
					for _, a := range answers(s.m.floor()) {
						s.word(fmt.Sprint("r", a))
					}
				}
				s.play("+100ms")
			}
			if n := s.m.counts.replays - asked; n > 20 {
				t.Errorf("%d replays in ten seconds, want at most 20", n)
			}
			if p := s.m.problem(); !strings.Contains(p, "did not go on at batch") {
				t.Errorf("problem %q, want one about the answers", p)
			}
		})
	}
}

func TestALossThatNoBatchShowsIsAResetWhereAnswersAreUseless(t *testing.T) {
	s := newScript(t, true)
	s.play("up r0 end 1")
	s.did = nil
	s.play("lost")
	for range 2 * maxTries {
		s.play("+2s r1 lost end")
	}
	if got := strings.Join(s.did, " "); got != "ask:2 ask:2 ask:2 ask:2 ask:2 ask:2 reset:gap" || !s.m.stale {
		t.Errorf("did %s, stale %t, want a reset and another replay later", got, s.m.stale)
	}
}

func TestAReplayThatGoesOnIsAProblemAfterTenSeconds(t *testing.T) {
	s := newScript(t, true)
	s.play("up")
	for seq := range 24 {
		s.word(fmt.Sprint("r", seq))
		if p := s.m.problem(); (p != "") != (s.now >= longAfter) {
			t.Fatalf("after %s: problem %q", s.now, p)
		}
		s.play("+500ms")
	}
	if p := s.m.problem(); !strings.Contains(p, "tcp://engine:5657 has gone on for") || !strings.Contains(p, "24 batches") {
		t.Errorf("problem %q, want where, how long and how many", p)
	}
	s.play("end")
	if p := s.m.problem(); p != "" {
		t.Errorf("problem %q after the end, want none", p)
	}
}

func TestTheEndOfALongReplayIsConfirmed(t *testing.T) {
	s := newScript(t, true)
	s.play("up")
	for seq := range trustBelow {
		s.word(fmt.Sprint("r", seq))
	}
	s.did = nil
	s.play("end r500 end")
	if got := strings.Join(s.did, " "); got != "ask:500 500 live" {
		t.Errorf("did %s", got)
	}
}

func TestWaitingBatchesAreBounded(t *testing.T) {
	s := newScript(t, true)
	s.play("up")
	for seq := range 1000 {
		s.word(fmt.Sprint(seq))
	}
	if s.m.pending.bytes > 2000 {
		t.Errorf("%d bytes wait, want at most 2000", s.m.pending.bytes)
	}
	s.play("r0 r1 end")
	for seq := s.m.next; seq < 1000; seq++ {
		s.word(fmt.Sprint("r", seq))
	}
	s.play("end end 1000")
	var want []string
	for seq := range 1001 {
		want = append(want, fmt.Sprint(seq))
	}
	got := slices.DeleteFunc(s.did, func(a string) bool { return a == "live" || strings.HasPrefix(a, "ask") })
	if !slices.Equal(got, want) {
		t.Errorf("%d batches, want 1001 in order", len(got))
	}
}

func TestRequestsWithoutEventsAreNoticed(t *testing.T) {
	s := newScript(t, false)
	s.play("up expect expect +31s")
	if s.m.silence.silent {
		t.Error("silent after two requests: both may have hit the cache")
	}
	s.play("expect +29s")
	if s.m.silence.silent {
		t.Error("silent after 29 s")
	}
	s.play("+1s")
	if !s.m.silence.silent || !strings.Contains(s.m.problem(), "publisher zmq") {
		t.Errorf("silent %t, problem %q", s.m.silence.silent, s.m.problem())
	}
	s.play("0")
	if s.m.silence.silent || s.m.problem() != "" {
		t.Error("still silent after an event")
	}
	s.play("+1s expect expect expect +10m")
	if s.m.silence.silent {
		t.Error("silent, although requests ended after their events came")
	}
	s.play("expect expect expect down +10m")
	if s.m.silence.silent {
		t.Error("silent while the socket is down")
	}
}

func TestAMessageWithoutANumberIsAProblem(t *testing.T) {
	s := newScript(t, false)
	s.play("up 0")
	s.m.malformed(errors.New("a message of 1 frames came"))
	if s.m.counts.damaged != 1 || !strings.Contains(s.m.problem(), "1 frames came: does tcp://engine:5557 belong") {
		t.Errorf("damaged %d, problem %q", s.m.counts.damaged, s.m.problem())
	}
}

func TestAnIdleMachineWaitsForNothing(t *testing.T) {
	for _, replay := range []bool{false, true} {
		s := newScript(t, replay)
		s.play("up end 0")
		if d := s.m.deadline(); d != 0 {
			t.Errorf("replay %t: deadline %s, want none", replay, d)
		}
	}
}
