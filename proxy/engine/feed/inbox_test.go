package feed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"kvca/state/virtualtime"
)

func kinds(items []item) []kind {
	var list []kind
	for i := range items {
		list = append(list, items[i].kind)
	}
	return list
}

func TestLiveBatchesBeyondTheBoundAreDroppedAndMarkedOnce(t *testing.T) {
	b := newInbox(1000)
	for seq := range uint64(10) {
		b.putLive(newBatch(seq, make([]byte, 400)))
	}
	items, dropped := b.take()
	if len(items) != 2 || items[1].kind != lossMark || dropped != 9 {
		t.Errorf("items of kinds %d, %d dropped; want one batch, one mark and 9", kinds(items), dropped)
	}
	b.putLive(newBatch(10, make([]byte, 400)))
	if items, _ := b.take(); len(items) != 1 || items[0].batch.seq != 10 {
		t.Errorf("items of kinds %d, want the next batch", kinds(items))
	}
}

func TestABatchLongerThanTheBoundFitsAlone(t *testing.T) {
	b := newInbox(100)
	b.putLive(newBatch(0, make([]byte, 1000)))
	if err := b.putReplay(t.Context(), item{kind: replayBatch, batch: newBatch(0, make([]byte, 1000))}); err != nil {
		t.Fatal(err)
	}
	if items, dropped := b.take(); len(items) != 2 || dropped != 0 {
		t.Errorf("items of kinds %d, %d dropped; want both", kinds(items), dropped)
	}
}

func TestAReplayWaitsForRoom(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		b := newInbox(1000)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		put := func() {
			done <- b.putReplay(ctx, item{kind: replayBatch, batch: newBatch(0, make([]byte, 800))})
		}
		go put()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		go put()
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("a second batch was taken beyond the bound")
		}
		b.take()
		if err := <-done; err != nil {
			t.Errorf("after room was made: %v", err)
		}
		go put()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("after the replay was given up: %v, want %v", err, context.Canceled)
		}
	})
}
