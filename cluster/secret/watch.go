package secret

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
)

const (
	pollEvery = 2 * time.Second
	maxFile   = 64 << 10
)

// A watch polls files for changes of their content. Files are read whole each
// time: they are small, and a mounted secret changes by a link that no time of
// the file tells.
type watch struct {
	log   *slog.Logger
	paths []string

	used [sha256.Size]byte // of what was last taken or refused
	seen [sha256.Size]byte // of what was there at the last look
	mute bool              // that it cannot be read was said
}

func newWatch(log *slog.Logger, paths ...string) *watch {
	return &watch{log: orDiscard(log), paths: paths}
}

func (w *watch) first() ([][]byte, error) {
	contents, sum, err := w.read()
	w.used, w.seen = sum, sum
	return contents, err
}

// run polls until ctx ends and calls take with each new content. What take
// refuses is logged once and stays without effect.
func (w *watch) run(ctx context.Context, take func(contents [][]byte) error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look(take)
		}
	}
}

// look takes a content when it sees it for the second time: the first may be of a
// file half written.
func (w *watch) look(take func(contents [][]byte) error) {
	contents, sum, err := w.read()
	if err != nil {
		if !w.mute {
			w.log.Error("cannot read key files, what was read before stays in force", slog.String("error", err.Error()))
		}
		w.mute = true
		return
	}
	w.mute = false
	settled := sum == w.seen
	w.seen = sum
	if !settled || sum == w.used {
		return
	}
	w.used = sum
	if err := take(contents); err != nil {
		w.log.Error("changed key files are no good, what was read before stays in force",
			slog.Any("files", w.paths), slog.String("error", err.Error()))
	}
}

func (w *watch) read() (contents [][]byte, sum [sha256.Size]byte, err error) {
	all := sha256.New()
	for _, path := range w.paths {
		b, err := readFile(path)
		if err != nil {
			return nil, sum, err
		}
		one := sha256.Sum256(b)
		all.Write(one[:])
		contents = append(contents, b)
	}
	all.Sum(sum[:0])
	return contents, sum, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("read %s: longer than %d bytes", path, maxFile)
	}
	return b, nil
}
