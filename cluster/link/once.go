package link

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// A line about the same matter of the same peer comes once in this time.
	onceEvery = 10 * time.Minute
	// maxOnce bounds what is remembered; beyond it nothing new is logged, since
	// whoever causes so many lines does so on purpose.
	maxOnce = 1024
)

// onceLog logs each matter once per peer or remote host.
type onceLog struct {
	log *slog.Logger

	mu   sync.Mutex
	seen map[[2]string]time.Time
}

func newOnceLog(log *slog.Logger) *onceLog {
	return &onceLog{log: log, seen: map[[2]string]time.Time{}}
}

// first says whether this matter of this one has not come up lately.
func (o *onceLog) first(matter, who string) bool {
	now := time.Now()
	key := [2]string{matter, who}
	o.mu.Lock()
	defer o.mu.Unlock()
	if at, ok := o.seen[key]; ok && now.Sub(at) < onceEvery {
		return false
	}
	if len(o.seen) >= maxOnce {
		for k, at := range o.seen {
			if now.Sub(at) >= onceEvery {
				delete(o.seen, k)
			}
		}
		if len(o.seen) >= maxOnce {
			return false
		}
	}
	o.seen[key] = now
	return true
}

func (o *onceLog) warn(matter, who, message string, err error, attrs ...slog.Attr) {
	if !o.first(matter, who) {
		return
	}
	attrs = append(attrs, slog.String("peer", who), slog.String("error", err.Error()))
	o.log.LogAttrs(context.Background(), slog.LevelWarn, message, attrs...)
}
