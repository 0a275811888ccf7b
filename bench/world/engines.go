package world

import (
	"context"
	"fmt"
	"net"
	"sync"

	"kvca/bench/engine"
)

// engines are simulated engines on ports of their own, in real time with a speed-up. close ends them.
type engines struct {
	urls    []string
	servers []*engine.Server
	stop    context.CancelFunc
	serving sync.WaitGroup
}

func startEngines(ctx context.Context, n int, cfg engine.ServerConfig) (*engines, error) {
	e := &engines{}
	ctx, e.stop = context.WithCancel(ctx)
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			e.close()
			return nil, fmt.Errorf("open engine %d: %w", i, err)
		}
		s := engine.NewServer(cfg)
		e.urls, e.servers = append(e.urls, "http://"+l.Addr().String()), append(e.servers, s)
		e.serving.Go(func() { _ = engine.Serve(ctx, l, s) }) // whose failure every request notices
	}
	return e, nil
}

func (e *engines) close() {
	e.stop()
	e.serving.Wait()
}

// agree finds fault where the engines have counted other tokens than the answers told.
func (e *engines) agree(r *recording) error {
	var prompt, cached int
	for _, s := range e.servers {
		s.Inspect(func(e *engine.Engine) {
			st := e.Stats()
			prompt, cached = prompt+int(st.PromptTokens), cached+int(st.CachedTokens)
		})
	}
	if p, c := r.tokens(); p != prompt || c != cached {
		return fmt.Errorf("the engines counted %d prompt tokens, %d of them cached; the answers told %d and %d", prompt, cached, p, c)
	}
	return nil
}
