package link

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

func TestQueueKeepsEachLanesOrderAndCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var pushed, popped [lanes]uint32
		var bytesIn [lanes]int
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				l := rapid.IntRange(0, lanes-1).Draw(t, "lane")
				size := rapid.SampledFrom([]int{4, 100, 9000, chunkSize - frameHead, chunkSize, 100_000}).Draw(t, "size")
				body := binary.LittleEndian.AppendUint32(make([]byte, 0, size), pushed[l])
				pushed[l]++
				q.push(Lane(l), byte(l), size, [][]byte{body, make([]byte, size-4)})
				bytesIn[l] += size + frameHead
			},
			"pop": func(t *rapid.T) {
				urgent := q.lanes[Urgent].head != nil
				c := q.pop()
				if (c == nil) != (bytesIn == [lanes]int{}) {
					t.Fatal("an empty queue gives nothing, any other something")
				}
				if c == nil {
					return
				}
				if urgent && c.lane != Urgent || len(c.buf) > chunkSize && c.frames > 1 {
					t.Fatalf("lane %v, %d frames of %d bytes", c.lane, c.frames, len(c.buf))
				}
				bytesIn[c.lane] -= len(c.buf)
				in := frameReader{r: bytes.NewReader(c.buf), limit: MaxFrame}
				for range c.frames {
					kind, body, err := in.next()
					if err != nil || kind != byte(c.lane) || binary.LittleEndian.Uint32(body) != popped[c.lane] {
						t.Fatalf("lane %v: kind %d, %v", c.lane, kind, err)
					}
					popped[c.lane]++
				}
				c.free()
			},
			"": func(t *rapid.T) {
				long := 0
				for l := range q.lanes {
					if q.lanes[l].bytes != bytesIn[l] {
						t.Fatalf("lane %d holds %d bytes, says %d", l, bytesIn[l], q.lanes[l].bytes)
					}
					for c := q.lanes[l].head; c != nil; c = c.next {
						if len(c.buf) > chunkSize {
							long++
						}
					}
				}
				if long != q.long {
					t.Fatalf("%d long chunks, counted %d", long, q.long)
				}
			},
		})
	})
}
