package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvca/state/quota"
	"kvca/state/ring"
)

// quotaLoad is what clients of one key do at all nodes.
type quotaLoad struct {
	key     string
	limit   quota.Limit
	service time.Duration
	span    time.Duration
	tick    time.Duration
	// rate is of arrivals at a node, a second.
	rate func(node int, passed time.Duration) float64
	// estimate and used are of tokens.
	estimate, used int64

	mu              sync.Mutex
	admitted        []int // by node
	times           []time.Duration
	refused, alone  int
	inUse, most     int
	slotTime        time.Duration
	slotAt, longest time.Duration
}

func evenRate(total float64) func(int, time.Duration) float64 {
	return func(int, time.Duration) float64 { return total / 8 }
}

func onNode(node int, total float64) func(int, time.Duration) float64 {
	return func(n int, _ time.Duration) float64 {
		if n == node {
			return total
		}
		return 0
	}
}

// begin starts clients at the living nodes, who stop after span or with their node.
func (l *quotaLoad) begin(w *world, done *sync.WaitGroup) {
	l.admitted = make([]int, len(w.nodes))
	began := time.Now()
	for i, n := range w.nodes {
		if !n.alive {
			continue
		}
		rng := rand.New(rand.NewPCG(ring.Key(l.key), uint64(i)))
		c, gone := n.c, n.done
		done.Go(func() {
			next := -rng.ExpFloat64()
			for passed := time.Duration(0); passed < l.span; passed = time.Since(began) {
				select {
				case <-gone:
					return
				case <-time.After(l.tick):
				}
				for next += l.rate(i, passed) * l.tick.Seconds(); next >= 0; next -= rng.ExpFloat64() {
					l.request(c, i, began)
				}
			}
		})
	}
}

func (l *quotaLoad) request(c *Cluster, node int, began time.Time) {
	asked := time.Now()
	v := c.Acquire(context.Background(), l.key, l.limit, l.estimate)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, time.Since(asked))
	if v.Degraded {
		l.alone++
	}
	if !v.OK {
		l.refused++
		return
	}
	l.admitted[node]++
	l.times = append(l.times, time.Since(began))
	l.use(1, began)
	end := func() {
		l.mu.Lock()
		l.use(-1, began)
		l.mu.Unlock()
		if l.used != l.estimate {
			c.Settle(l.key, l.used-l.estimate)
		}
		c.Release(l.key)
	}
	if l.service == 0 { // a timer of no time has crashed Go's race detector in a bubble
		go end()
	} else {
		time.AfterFunc(l.service, end)
	}
}

func (l *quotaLoad) use(n int, began time.Time) {
	now := time.Since(began)
	l.slotTime += time.Duration(l.inUse) * (now - l.slotAt)
	l.slotAt = now
	l.inUse += n
	l.most = max(l.most, l.inUse)
}

// between is how many were admitted in that time.
func (l *quotaLoad) between(from, to time.Duration) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.times {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// most is how many were admitted in the fullest window of that length.
func (l *quotaLoad) fullest(window time.Duration) (most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := 0
	for i, at := range l.times {
		for l.times[first] <= at-window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func near(got, want float64) bool { return got >= 0.95*want && got <= 1.05*want }

func (w *world) eight() {
	w.net.SetStreams(200*time.Microsecond, 200*time.Microsecond)
	w.start(8, 1, nil)
	w.eventually("together", 20*time.Second, w.together)
	time.Sleep(2 * time.Second) // so that empty buckets have filled
}

// play runs loads until they end; meanwhile is called beside them.
func (w *world) play(meanwhile func(), loads ...*quotaLoad) {
	var done sync.WaitGroup
	for _, l := range loads {
		l.tick = max(l.tick, time.Millisecond)
		l.begin(w, &done)
	}
	if meanwhile != nil {
		meanwhile()
	}
	done.Wait()
}

// The clients of eight nodes, however they are spread, get what is configured for
// all of them together.
func TestLimitsHoldOverEightNodes(t *testing.T) {
	small := &quotaLoad{key: "small", limit: quota.Limit{Requests: 2}, rate: evenRate(30), span: 22 * time.Second, tick: 100 * time.Millisecond}
	large := &quotaLoad{key: "large", limit: quota.Limit{Requests: 10_000, Burst: 200 * time.Millisecond}, rate: evenRate(16_000), span: 2000 * time.Millisecond, tick: 10 * time.Millisecond}
	one := &quotaLoad{key: "one", limit: quota.Limit{Requests: 1000}, rate: onNode(5, 1600), span: 4 * time.Second, tick: 5 * time.Millisecond}
	moving := &quotaLoad{key: "moving", limit: quota.Limit{Requests: 300}, rate: func(n int, passed time.Duration) float64 {
		return onNode(int(passed/time.Second)*3%8, 600)(n, 0)
	}, span: 10 * time.Second, tick: 10 * time.Millisecond}
	slots := &quotaLoad{key: "slots", limit: quota.Limit{Concurrent: 4}, rate: evenRate(160), service: 500 * time.Millisecond, span: 8 * time.Second, tick: 10 * time.Millisecond}
	tokens := &quotaLoad{key: "tokens", limit: quota.Limit{Tokens: 50_000}, estimate: 1000, used: 600, rate: evenRate(160), service: 200 * time.Millisecond, span: 8 * time.Second, tick: 20 * time.Millisecond}
	rates := map[*quotaLoad]float64{small: 2, large: 10_000, one: 1000, moving: 300, tokens: 50_000.0 / 600}
	inBubble(t, 40, func(w *world) {
		w.eight()
		w.play(nil, small, large, one, moving, slots, tokens)
		time.Sleep(time.Second)
	})
	for l, rate := range rates {
		began := min(2*time.Second, l.span/2) // what was saved up is used up
		if want := rate * (l.span - began).Seconds(); !near(float64(l.between(began, l.span)), want) {
			t.Errorf("%s: %d admitted, want about %.0f: %v", l.key, l.between(began, l.span), want, l.admitted)
		}
		if l.alone > 0 {
			t.Errorf("%s: %d decided without the owner", l.key, l.alone)
		}
	}
	mean := slots.slotTime.Seconds() / slots.span.Seconds()
	if slots.most > 4 || mean < 0.95*4 {
		t.Errorf("of 4 slots %.2f are used on average, %d at most: %v", mean, slots.most, slots.admitted)
	}
	t.Logf("slots %.2f of 4; longest wait %v", mean, large.longest)
}

// ownerOf is the node that owns a key, and the others.
func (w *world) ownerOf(key string) (owner *testNode, others []*testNode) {
	v := w.living()[0].c.view.Load()
	for _, n := range w.living() {
		if n.name == v.ring.Owner(ring.Key(key)) {
			owner = n
		} else {
			others = append(others, n)
		}
	}
	return owner, others
}

// Without its owner a key is held to the limit by shares, and then by the next owner.
func TestAKeysOwnerIsKilled(t *testing.T) {
	rate := &quotaLoad{key: "rate", limit: quota.Limit{Requests: 200}, rate: evenRate(500), span: 12 * time.Second, tick: 20 * time.Millisecond}
	slow := &quotaLoad{key: "slow", limit: quota.Limit{Requests: 2}, rate: evenRate(40), span: 12 * time.Second, tick: 50 * time.Millisecond}
	slots := &quotaLoad{key: "slots", limit: quota.Limit{Concurrent: 16}, rate: evenRate(100), service: 500 * time.Millisecond, span: 12 * time.Second, tick: 20 * time.Millisecond}
	var killed, taken time.Duration
	inBubble(t, 41, func(w *world) {
		w.eight()
		began := time.Now()
		w.play(func() {
			time.Sleep(4 * time.Second)
			killed = time.Since(began)
			owner, _ := w.ownerOf("rate")
			owner.kill()
			w.eventually("somebody else owns", 10*time.Second, w.together)
			taken = time.Since(began)
		}, rate, slow, slots)
	})
	t.Logf("killed after %v, taken over after %v; rate: %d without the owner", killed, taken, rate.alone)
	if rate.alone == 0 {
		t.Error("nothing was decided without the owner, nor marked so")
	}
	if n := rate.between(killed, taken); float64(n) > 1.05*200*(taken-killed).Seconds()+20 || n == 0 {
		t.Errorf("%d admitted while the owner was away for %v", n, taken-killed)
	}
	end := taken + time.Second
	if n := rate.between(end, rate.span); !near(float64(n), 200*(rate.span-end).Seconds()) {
		t.Errorf("%d admitted in the %v after that", n, rate.span-end)
	}
	if n := rate.between(taken, end); n < 100 {
		t.Errorf("%d admitted in the first second of the new owner", n)
	}
	if n := rate.fullest(time.Second); n > 2*220+30 { // one second, and what was saved up at the beginning
		t.Errorf("%d admitted in one second", n)
	}
	if n, want := float64(slow.between(end, slow.span)), 2*(slow.span-end).Seconds(); n > want+2 || n < want-2 {
		t.Errorf("of 2 requests a second %v in %v", n, slow.span-end)
	}
	if slots.most > 16+8 {
		t.Errorf("%d at once, want 16, and one more for each node at most", slots.most)
	}
}

// What a dead node held comes back with its lease.
func TestAHolderOfSlotsIsKilled(t *testing.T) {
	inBubble(t, 42, func(w *world) {
		w.net.SetStreams(200*time.Microsecond, 0)
		w.start(3, 1, nil)
		w.eventually("together", 20*time.Second, w.together)
		time.Sleep(2 * time.Second)
		_, others := w.ownerOf("key")
		dead, alive := others[0], others[1]
		l := quota.Limit{Concurrent: 4}
		acquire := func(n *testNode) quota.Verdict { return n.c.Acquire(context.Background(), "key", l, 1) }
		for range 3 {
			if v := acquire(dead); !v.OK || v.Degraded {
				t.Fatalf("%+v", v)
			}
		}
		if v := acquire(alive); !v.OK {
			t.Fatalf("the last slot: %+v", v)
		}
		if v := acquire(alive); v.OK || v.Why != quota.Concurrency {
			t.Fatalf("a fifth slot: %+v", v)
		}
		time.Sleep(10 * time.Second) // what is held and told stays held
		if v := acquire(alive); v.OK {
			t.Fatalf("a fifth slot, later: %+v", v)
		}
		dead.kill()
		took := w.eventually("its slots are back", 3*time.Second, func() string {
			if v := acquire(alive); !v.OK || v.Degraded {
				return fmt.Sprintf("%+v", v)
			}
			return ""
		})
		t.Logf("after %v", took)
		for range 2 {
			if v := acquire(alive); !v.OK {
				t.Errorf("%+v", v)
			}
		}
		alive.c.Release("key")
		if v := acquire(alive); !v.OK {
			t.Errorf("after a release: %+v", v)
		}
		if v := acquire(alive); v.OK {
			t.Errorf("a fifth slot, at last: %+v", v)
		}
	})
}

// A node that is cut off goes by its share at first, and by itself when nobody else is
// left for it. When all is whole again the limit is that of all.
func TestLimitsOverAPartition(t *testing.T) {
	l := &quotaLoad{key: "key", limit: quota.Limit{Requests: 100}, rate: evenRate(400), span: 26 * time.Second, tick: 40 * time.Millisecond}
	slots := &quotaLoad{key: "slots", limit: quota.Limit{Concurrent: 8}, rate: evenRate(60), service: 300 * time.Millisecond, span: 26 * time.Second, tick: 40 * time.Millisecond}
	var parted, healed, whole time.Duration
	inBubble(t, 43, func(w *world) {
		w.net.SetStreams(200*time.Microsecond, 0)
		w.start(4, 1, nil)
		w.eventually("together", 20*time.Second, w.together)
		began := time.Now()
		w.play(func() {
			time.Sleep(4 * time.Second)
			parted = time.Since(began)
			w.net.Partition([]string{"n0", "n1"}, []string{"n2", "n3"})
			time.Sleep(10 * time.Second)
			w.net.Heal()
			healed = time.Since(began)
			w.eventually("together again", 20*time.Second, w.together)
			whole = time.Since(began)
		}, l, slots)
	})
	t.Logf("parted %v, healed %v, whole %v; %d without the owner", parted, healed, whole, l.alone)
	if n := l.between(2*time.Second, parted); !near(float64(n), 100*(parted-2*time.Second).Seconds()) {
		t.Errorf("%d admitted before", n)
	}
	if n := l.between(parted, healed); float64(n) > 2.1*100*(healed-parted).Seconds() {
		t.Errorf("%d admitted by both sides in %v", n, healed-parted)
	}
	from := whole + 2*time.Second
	if n := l.between(from, l.span); !near(float64(n), 100*(l.span-from).Seconds()) {
		t.Errorf("%d admitted in the %v after that", n, l.span-from)
	}
	if slots.most > 16 {
		t.Errorf("%d slots of 8 in use by both sides", slots.most)
	}
}

// An owner that says nothing delays requests by the budget at most, and few of them.
func TestAHangingOwnerIsDoneWithout(t *testing.T) {
	inBubble(t, 44, func(w *world) {
		w.net.SetStreams(200*time.Microsecond, 0)
		w.start(3, 1, nil)
		w.eventually("together", 20*time.Second, w.together)
		time.Sleep(time.Second)
		owner, others := w.ownerOf("key")
		owner.host.Pause()
		l, longest, alone := quota.Limit{Requests: 300}, time.Duration(0), 0
		began := time.Now()
		total := time.Duration(0)
		for time.Since(began) < time.Second {
			asked := time.Now()
			v := others[0].c.Acquire(context.Background(), "key", l, 1)
			total += time.Since(asked)
			longest = max(longest, time.Since(asked))
			if v.Degraded {
				alone++
			}
			time.Sleep(time.Millisecond)
		}
		if most := trust * defaultBudget; longest > most {
			t.Errorf("a request waited for %v, want %v at most", longest, most)
		}
		if total > 200*time.Millisecond || alone < 500 {
			t.Errorf("waited for %v in a second, %d decided without the owner", total, alone)
		}
		owner.host.Resume()
		w.eventually("the owner is asked again", 5*time.Second, func() string {
			if v := others[0].c.Acquire(context.Background(), "key", l, 1); v.Degraded {
				return "degraded"
			}
			return ""
		})
	})
}

// Many requests at once are one question.
func TestABurstIsOneQuestion(t *testing.T) {
	inBubble(t, 45, func(w *world) {
		w.net.SetStreams(200*time.Microsecond, 0)
		w.start(2, 1, nil)
		w.eventually("together", 20*time.Second, w.together)
		time.Sleep(2 * time.Second)
		_, others := w.ownerOf("key")
		c := others[0].c
		var admitted atomic.Int64
		var done sync.WaitGroup
		for range 200 {
			done.Go(func() {
				if c.Acquire(context.Background(), "key", quota.Limit{Requests: 100, Concurrent: 60}, 1).OK {
					admitted.Add(1)
				}
			})
		}
		done.Wait()
		if n := admitted.Load(); n != 60 {
			t.Errorf("%d admitted, want 60: as many as may be under way", n)
		}
		if n := valueOf(c.quotas.metrics.granted) + valueOf(c.quotas.metrics.refused); n > 6 {
			t.Errorf("%v questions", n)
		}
		list := c.LimitStatus(10)
		if len(list) != 1 || list[0].Owner == c.cfg.Node || list[0].Here.Concurrent != 60 || list[0].Limit.RequestsPerSecond != 100 || list[0].Cluster != nil {
			t.Errorf("status %+v", list)
		}
		time.Sleep(100 * time.Millisecond)
		owner, _ := w.ownerOf("key")
		if list = owner.c.LimitStatus(10); len(list) != 1 || list[0].Cluster == nil || list[0].Cluster.Concurrent < 60 {
			t.Errorf("the owner's status %+v", list)
		}
		for range 60 {
			c.Release("key")
		}
		time.Sleep(2 * quotaIdle)
		for _, n := range w.nodes {
			if list := n.c.LimitStatus(10); len(list) != 0 {
				t.Errorf("%s still knows %+v", n.name, list)
			}
		}
	})
}
