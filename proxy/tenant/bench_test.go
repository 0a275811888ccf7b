package tenant

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What every request pays where there is room: who it is, and a look at the queue.
func BenchmarkFind(b *testing.B) {
	var text strings.Builder
	text.WriteString("tenants:\n")
	keys := make([]string, 1000)
	for i := range keys {
		var hash string
		keys[i], hash = NewKey()
		fmt.Fprintf(&text, "- {name: t%d, keys: [%s]}\n", i, hash)
	}
	d := open(b, text.String())
	h := http.Header{"Authorization": {"Bearer " + keys[500]}, "Content-Type": {"application/json"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Find(h); err != nil {
			b.Fatal(err)
		}
	}
}

func roomy() int { return 1 }

func BenchmarkEnterWithRoom(b *testing.B) {
	q := NewQueue(QueueConfig{}, nil)
	w := Waiter{Tenant: "acme", Class: 5, Weight: 1, Bytes: 1000}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if waited, err := q.Enter(context.Background(), "p", w, roomy); waited != 0 || err != nil {
				b.Fatal(err)
			}
			q.Freed("p")
		}
	})
}

// Another pool's waiters cost a request a lock, not a wait.
func BenchmarkEnterBesideAFullPool(b *testing.B) {
	q := NewQueue(QueueConfig{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.Enter(ctx, "full", Waiter{}, func() int { return 0 })
	}()
	for q.Waiting("full") == 0 {
		time.Sleep(time.Millisecond)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := q.Enter(context.Background(), "p", Waiter{}, roomy); err != nil {
				b.Fatal(err)
			}
		}
	})
	cancel()
	<-ended
}

// A turn in a full queue: one leaves, one comes, all bounds are at their default.
func BenchmarkTurn(b *testing.B) {
	for _, tenants := range []int{1, 10, 1024} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			o := newOrder(1024, math.MaxInt64, time.Hour)
			entries := make([]*entry, 1024)
			for i := range entries {
				entries[i] = newEntry(fmt.Sprint(i%tenants), "p", 5, 1)
				o.arrive(entries[i], start)
			}
			b.ReportAllocs()
			for b.Loop() {
				e := o.first("p", start)
				o.take(e, start)
				o.arrive(e, start)
			}
		})
	}
}
