package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"kvca/bench/load"
	"kvca/bench/process"
)

// startTime is how long a gateway may take until it serves.
const startTime = 60 * time.Second

// Running is a started gateway. Close ends it.
type Running struct {
	Name string
	// Addr is where it serves clients, Admin where it serves what else it does.
	Addr, Admin string
	// Started is how long it took until it had served a request.
	Started time.Duration
	*process.Child
}

// Start starts a gateway and returns when it has served a request of the
// model that the probe is for.
func Start(ctx context.Context, name string, e *Env, probe []byte) (*Running, error) {
	ports, err := process.FreePorts(4)
	if err != nil {
		return nil, err
	}
	args, err := recipes[name](e, ports[0], ports[1])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if args[0] == e.Kvca {
		args = append(args, clusterFlags(ctx, e.Kvca, ports[2], ports[3])...)
	}
	began := time.Now()
	child, err := process.Start(ctx, process.Spec{Name: name, Args: args, Dir: e.Dir})
	if err != nil {
		return nil, err
	}
	r := &Running{Name: name, Addr: local(ports[0]), Admin: local(ports[1]), Child: child}
	if err := child.Await(ctx, startTime, func() error { return load.Once(r.Addr, probe, 5*time.Second) }); err != nil {
		child.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	r.Started = time.Since(began)
	return r, nil
}

// Ready asks kvca whether it may be sent requests; nil says yes.
func (r *Running) Ready(ctx context.Context) error {
	_, err := r.get(ctx, "/readyz")
	return err
}

// Explain asks kvca how it would route a chat, which it doesn't send.
func (r *Running) Explain(ctx context.Context, body []byte) (d Explained, err error) {
	text, err := r.ask(ctx, http.MethodPost, "/explain", bytes.NewReader(body))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("read decision: %w", err)
	}
	return d, nil
}

// DrainBackend keeps new requests from a backend of kvca's, or ends that.
func (r *Running) DrainBackend(ctx context.Context, id string, on bool) error {
	what := map[bool]string{true: "/drain", false: "/undrain"}[on]
	_, err := r.ask(ctx, http.MethodPost, "/backends/"+id+what, nil)
	return err
}

// Explained is what is used of a decision.
type Explained struct {
	Backend       string `json:"backend"`
	ChainBlocks   int    `json:"chain_blocks"`
	MatchedBlocks int    `json:"matched_blocks"`
	Candidates    []struct {
		Backend       string `json:"backend"`
		Eligible      bool   `json:"eligible"`
		MatchedBlocks int    `json:"matched_blocks"`
	} `json:"candidates"`
}

func (r *Running) get(ctx context.Context, path string) ([]byte, error) {
	return r.ask(ctx, http.MethodGet, path, nil)
}

// ask asks the admin address.
func (r *Running) ask(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.Admin+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", r.Name, path, err)
	}
	req.Close = true // a kept connection would count among kvca's goroutines
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", r.Name, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", r.Name, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("ask %s for %s: status %d: %.200s", r.Name, path, resp.StatusCode, text)
	}
	return text, nil
}
