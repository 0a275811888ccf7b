package secret

import (
	"context"
	"fmt"
	"log/slog"
)

// Follow gives take the content of a file, and again whenever it changes while the
// returned function runs: a content that take refuses is logged and stays without
// effect, but for the first, which is an error.
func Follow(path string, log *slog.Logger, take func(content []byte) error) (run func(context.Context), err error) {
	w := newWatch(log, path)
	contents, err := w.first()
	if err != nil {
		return nil, err
	}
	if err := take(contents[0]); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return func(ctx context.Context) {
		w.run(ctx, func(contents [][]byte) error { return take(contents[0]) })
	}, nil
}
