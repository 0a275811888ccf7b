package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kvca/bench/fake"
)

// Stage is where in its request a client leaves.
type Stage int

// The stages, in the order in which a client passes them.
const (
	Upload Stage = iota
	Prefill
	Stream
	stages
)

// String is the stage's name in tables.
func (s Stage) String() string { return [...]string{"upload", "prefill", "stream"}[s] }

// Leave is many clients that go away at random moments. Each has a connection of
// its own, and a conversation number by which the backends know it.
type Leave struct {
	Addr, Model string
	Clients     int
	// Connections is how many clients there are at the same time.
	Connections int
	BodyBytes   int
	// Prefill and StreamFor are how long the backends take until they answer and
	// to answer: the moments are spread over them.
	Prefill, StreamFor time.Duration
	Timeout            time.Duration
	Seed               uint64
}

// Leaver is what became of one client.
type Leaver struct {
	Stage Stage
	// Left is when it closed its connection; zero where the answer was first or
	// the request failed.
	Left time.Time
	// Finished is set where the whole answer had come before the client left.
	Finished bool
	Err      error
}

// Run returns what became of each client, by its conversation number.
func (l Leave) Run(ctx context.Context) []Leaver {
	leavers := make([]Leaver, l.Clients)
	var taken atomic.Int64
	var running sync.WaitGroup
	for range l.Connections {
		running.Go(func() {
			for ctx.Err() == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(leavers) {
					return
				}
				leavers[i] = l.client(i)
			}
		})
	}
	running.Wait()
	return leavers
}

func (l Leave) client(id int) Leaver {
	r := rand.New(rand.NewPCG(l.Seed, uint64(id)))
	v := Leaver{Stage: Stage(r.IntN(int(stages)))}
	c, err := net.DialTimeout("tcp", l.Addr, l.Timeout)
	if err != nil {
		v.Err = fmt.Errorf("connect: %w", err)
		return v
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(l.Timeout))
	if r.IntN(2) == 0 {
		_ = c.(*net.TCPConn).SetLinger(0) // half of them are cut off, half take leave
	}
	streamed := v.Stage == Stream || r.IntN(2) == 0
	v.Err = l.act(c, &v, r, l.request(id, streamed, r))
	if v.Err == nil && !v.Finished {
		v.Left = time.Now()
	}
	return v
}

func (l Leave) request(id int, stream bool, r *rand.Rand) []byte {
	return Request(body(l.Model, stream, []string{message("user", fake.Marker(id, 0)+Text(r, l.BodyBytes))}))
}

// act takes a client to the moment at which it leaves.
func (l Leave) act(c net.Conn, v *Leaver, r *rand.Rand, request []byte) error {
	if v.Stage == Upload {
		request = request[:r.IntN(len(request))]
	}
	if _, err := c.Write(request); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	switch v.Stage {
	case Upload:
		time.Sleep(upTo(r, 20*time.Millisecond))
		return nil
	case Prefill:
		return readUntil(c, v, time.Now().Add(upTo(r, l.Prefill)))
	default:
		return readUntil(c, v, time.Now().Add(l.Prefill+upTo(r, l.StreamFor)))
	}
}

// readUntil reads what comes until the moment.
func readUntil(c net.Conn, v *Leaver, moment time.Time) error {
	_ = c.SetReadDeadline(moment)
	tail := make([]byte, 0, 64)
	buf := make([]byte, 16<<10)
	for {
		n, err := c.Read(buf)
		tail = append(tail, buf[:n]...)
		tail = tail[max(0, len(tail)-32):]
		v.Finished = v.Finished || answerEnds(tail)
		switch {
		case err == nil:
		case isTimeout(err):
			return nil
		case err == io.EOF:
			return fmt.Errorf("connection closed by the gateway: %w", err)
		default:
			return fmt.Errorf("read response: %w", err)
		}
	}
}

// answerEnds is whether the last bytes of a response are those of a whole answer:
// the last chunk of a chunked body, or the end of the usage.
func answerEnds(tail []byte) bool {
	return bytes.HasSuffix(tail, []byte("0\r\n\r\n")) || bytes.HasSuffix(tail, []byte("}}}"))
}

func upTo(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(max(d, 1))))
}
