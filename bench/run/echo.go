package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"kvca/bench/process"
)

// A bare call: so many bytes there and back over one TCP connection between two
// processes. What an owner's call takes more than that is the product's.
const bareCall = 64

// runEcho answers bare calls until it is ended, after it has printed its address.
func runEcho(ctx context.Context, args []string) error {
	if err := flag.NewFlagSet("echo", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	stopped := context.AfterFunc(ctx, func() { l.Close() })
	defer stopped()
	fmt.Println(l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return nil // it is ended
		}
		go func() {
			defer c.Close()
			io.Copy(c, c) //nolint:errcheck // whoever calls sees it
		}()
	}
}

// bareCalls are calls to an echo in another process, made at a rate beside a load.
type bareCalls struct {
	echo  *process.Child
	conn  net.Conn
	stop  context.CancelFunc
	done  chan struct{}
	times []time.Duration
	err   error
}

// callBare begins bare calls, so many a second.
func (r *rig) callBare(ctx context.Context, rate float64) (*bareCalls, error) {
	b := &bareCalls{done: make(chan struct{})}
	var err error
	b.echo, err = process.Start(ctx, process.Spec{Name: "echo", Dir: r.env.Dir, Args: []string{r.env.Self, "echo"}})
	if err != nil {
		return nil, err
	}
	err = b.echo.Await(ctx, 10*time.Second, func() (err error) {
		b.conn, err = net.DialTimeout("tcp", strings.TrimSpace(b.echo.Log()), time.Second)
		return err
	})
	if err != nil {
		b.echo.Close()
		return nil, fmt.Errorf("start echo: %w", err)
	}
	ctx, b.stop = context.WithCancel(ctx)
	go b.run(ctx, time.Duration(float64(time.Second)/rate))
	return b, nil
}

func (b *bareCalls) run(ctx context.Context, every time.Duration) {
	defer close(b.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	in, frame := bufio.NewReader(b.conn), make([]byte, bareCall)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		if _, b.err = b.conn.Write(frame); b.err != nil {
			return
		}
		if _, b.err = io.ReadFull(in, frame); b.err != nil {
			return
		}
		b.times = append(b.times, time.Since(began))
	}
}

// end ends the calls and says how long they took.
func (b *bareCalls) end() (p50, p99 time.Duration, err error) {
	b.stop()
	b.conn.SetDeadline(time.Now().Add(time.Second)) //nolint:errcheck // run ends by its context too
	<-b.done
	b.conn.Close()
	b.echo.Close()
	if len(b.times) == 0 {
		return 0, 0, fmt.Errorf("no bare call was made: %w", b.err)
	}
	slices.Sort(b.times)
	return b.times[len(b.times)/2], b.times[len(b.times)*99/100], nil
}
