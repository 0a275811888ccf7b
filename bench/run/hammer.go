package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kvca/bench/load"
)

// hammer sends one body to an address again and again: rate a second, or as often as
// it can where that is 0.
type hammer func(ctx context.Context, addr string, rate float64, lasts time.Duration) (*load.Result, error)

// newHammer takes h2load where it is installed, which costs the machine less than
// this program's own clients.
func (r *rig) newHammer(body []byte) (name string, h hammer, err error) {
	if _, err := exec.LookPath("h2load"); err != nil {
		return "this program's own clients, since h2load is not installed", func(ctx context.Context, addr string, rate float64, lasts time.Duration) (*load.Result, error) {
			return load.Closed{Addr: addr, Connections: 2 * connections, Requests: load.Same(body), Rate: rate, Duration: lasts, Timeout: requestTime}.Run(ctx), nil
		}, nil
	}
	file := filepath.Join(r.env.Dir, "body.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return "", nil, fmt.Errorf("write body: %w", err)
	}
	return "h2load", func(ctx context.Context, addr string, rate float64, lasts time.Duration) (*load.Result, error) {
		return h2load(ctx, filepath.Join(r.env.Dir, "h2load.log"), file, addr, rate, lasts)
	}, nil
}

// h2load runs it with HTTP/1.1 and reads its log: start, status and microseconds of
// each request.
func h2load(ctx context.Context, log, body, addr string, rate float64, lasts time.Duration) (*load.Result, error) {
	_ = os.Remove(log) // h2load appends
	clients := strconv.Itoa(2 * connections)
	args := []string{"--h1", "-c", clients, "-t", "1", "-D", strconv.Itoa(int(lasts.Seconds())), "-d", body, "-H", "content-type: application/json", "--log-file=" + log}
	if rate > 0 {
		args = append(args, "--rps="+strconv.FormatFloat(rate/(2*connections), 'f', 3, 64))
	}
	ctx, cancel := context.WithTimeout(ctx, lasts+requestTime)
	defer cancel()
	text, err := exec.CommandContext(ctx, "h2load", append(args, "http://"+addr+"/v1/chat/completions")...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run h2load: %w: %.500s", err, text)
	}
	f, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("read h2load's log: %w", err)
	}
	defer f.Close()
	res, err := readLog(bufio.NewScanner(f))
	if err != nil {
		return nil, err
	}
	res.Elapsed = lasts
	return res, lost(res, string(text))
}

// readLog reads a log of h2load's.
func readLog(lines *bufio.Scanner) (*load.Result, error) {
	res := &load.Result{}
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			return nil, fmt.Errorf("read h2load's log: %q, want a start, a status and a time", lines.Text())
		}
		took, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read h2load's log: %w", err)
		}
		if fields[1] != "200" {
			res.Failed++
			continue
		}
		res.OK++
		res.Latency.Add(time.Duration(took) * time.Microsecond)
	}
	return res, lines.Err()
}

var failed = regexp.MustCompile(`(\d+) failed, (\d+) errored, (\d+) timeout`)

// lost takes in what h2load counts as failed, in the case that its log shows less. What
// it calls errors and timeouts is part of that.
func lost(res *load.Result, text string) error {
	m := failed.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("h2load says nothing of errors: %.300q", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	res.Failed = max(res.Failed, n)
	return err
}
