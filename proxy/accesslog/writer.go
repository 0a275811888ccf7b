package accesslog

import (
	"bytes"
	"time"
)

// flushAfter is how long a line may wait for others, so that a busy log is
// written in few pieces.
const flushAfter = 200 * time.Millisecond

// write is the writer's goroutine.
func (l *Log) write() {
	defer close(l.done)
	var spare []byte
	failing := false
	for open := true; open; {
		open = l.linger()
		l.mu.Lock()
		batch := l.pending
		l.pending = spare[:0]
		l.mu.Unlock()
		failing = l.flush(batch, failing)
		spare = batch
	}
}

// linger waits until something is to be written; it returns false where the log
// is being closed.
func (l *Log) linger() bool {
	select {
	case <-l.stop:
		return false
	case <-l.wake:
	}
	timer := time.NewTimer(flushAfter)
	defer timer.Stop()
	select {
	case <-l.stop:
		return false
	case <-l.hurry:
	case <-timer.C:
	}
	return true
}

// flush writes lines. The log for operators is told when writing begins to fail
// and when it works again, not of each line.
func (l *Log) flush(batch []byte, failing bool) bool {
	if len(batch) == 0 {
		return failing
	}
	lines := float64(bytes.Count(batch, []byte{'\n'}))
	if err := l.sink.write(batch, time.Now()); err != nil {
		l.metrics.failed.Add(lines)
		if !failing {
			l.cfg.Logger.Error("access log can't be written: lines are lost", "path", l.cfg.Path, "error", err)
		}
		return true
	}
	l.metrics.lines.Add(lines)
	if failing {
		l.cfg.Logger.Info("access log is written again", "path", l.cfg.Path)
	}
	return false
}
