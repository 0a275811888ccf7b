package member

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"time"
)

// gossipLog turns memberlist's lines into records of ours: debug, but for warnings
// at a bounded rate. Some events show only there, so it also reads them; the texts
// are of memberlist v0.7 and a test watches each.
//
// log.Logger calls Write one line at a time.
type gossipLog struct {
	log   *slog.Logger
	event func(event, string) // the string is a node's name or where it came from, where that matters

	last    time.Time // when a warning was written
	skipped int       // warnings since
}

// event is something that only memberlist's log tells.
type event uint8

const (
	suspected   event = iota + 1 // this node's probe of the named one failed
	undecrypted                  // no key opens what came
	inClear                      // what came is not encrypted, and this node has keys
	noKey                        // what came is encrypted, and this node has no keys
	badPacket
	badStream
	queueFull // messages dropped
	tcpOnly   // UDP fails, TCP does not
)

// refuses tells whether what came is told as a refusal.
func (e event) refuses() bool { return e == undecrypted || e == inClear || e == noKey }

// events are the marks of each, in lower case, in the order they are looked for.
var events = []struct {
	mark  string
	event event
}{
	{"suspect ", suspected},
	{"decrypt", undecrypted},
	{"no installed keys", undecrypted},
	{"encryption is configured but", inClear},
	{"encryption is not configured", noKey},
	{"over tcp but udp probes failed", tcpOnly},
	{"handler queue full", queueFull},
	{"failed to receive", badStream},
	{"failed to read remote state", badStream},
	{"received invalid msgtype", badStream},
	{"failed to decode", badPacket},
	{"truncated", badPacket},
	{"not supported", badPacket},
	{"checksum", badPacket},
	{"missing message type", badPacket},
	{"decompress", badPacket},
}

const warnEvery = 10 * time.Second

func newGossipLog(logger *slog.Logger, on func(event, string)) *log.Logger {
	return log.New(&gossipLog{log: logger, event: on}, "", 0)
}

// Write takes one line.
func (g *gossipLog) Write(line []byte) (int, error) {
	level, text := splitLevel(string(line))
	e, name := find(text)
	if e != 0 {
		g.event(e, name)
	}
	if e.refuses() || strings.Contains(text, refusedPrefix) {
		level = slog.LevelDebug // told as a refusal
	}
	g.emit(level, text)
	return len(line), nil
}

func (g *gossipLog) emit(level slog.Level, text string) {
	ctx := context.Background()
	if level >= slog.LevelWarn {
		if now := time.Now(); now.Sub(g.last) >= warnEvery {
			g.log.Log(ctx, slog.LevelWarn, "gossip", "text", text, "skipped", g.skipped)
			g.last, g.skipped = now, 0
			return
		}
		g.skipped++
	}
	g.log.Log(ctx, slog.LevelDebug, "gossip", "text", text)
}

// splitLevel takes "[WARN] memberlist: " off a line.
func splitLevel(line string) (slog.Level, string) {
	line = strings.TrimSpace(line)
	level := slog.LevelDebug
	if tag, rest, ok := strings.Cut(line, "] "); ok && strings.HasPrefix(tag, "[") {
		line = rest
		switch tag[1:] {
		case "WARN", "ERR", "ERROR":
			level = slog.LevelWarn
		}
	}
	return level, strings.TrimPrefix(line, "memberlist: ")
}

// find tells which event a line is, and of which node.
func find(text string) (event, string) {
	lower := strings.ToLower(text)
	for _, e := range events {
		at := strings.Index(lower, e.mark)
		if at < 0 {
			continue
		}
		if e.event != suspected {
			return e.event, origin(text)
		}
		// "Suspect <name> has failed, no acks received"
		if name, _, ok := strings.Cut(text[at+len(e.mark):], " has failed"); ok && at == 0 {
			return suspected, name
		}
	}
	return 0, ""
}

// origin is the address that a line is about, "" if it names none.
func origin(text string) string {
	if _, from, ok := strings.Cut(text, " from="); ok {
		return from
	}
	if rest, ok := strings.CutPrefix(text, "failed to join "); ok { // "failed to join <address>: <error>"
		at, _, _ := strings.Cut(rest, ": ")
		return at
	}
	return ""
}
