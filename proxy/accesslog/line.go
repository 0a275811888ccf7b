package accesslog

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"kvca/proxy/record"
)

// maxValue bounds a value that others chose, maxLine is more than a line takes of
// them, escaped.
const (
	maxValue = 256
	maxLine  = 8 << 10
)

// format appends the request's line.
func (l *Log) format(b []byte, r *record.Record, kept string) []byte {
	e := encoder{b: b, json: l.cfg.Format == JSON}
	e.open()
	e.time("time", r.Began)
	e.word("kept", kept)
	e.word("request_id", r.ID)
	e.word("trace_id", r.Trace)
	e.client("client", l.client, r)
	e.word("method", r.Method)
	e.word("endpoint", r.Endpoint)
	e.word("model", r.Model)
	e.word("alias", r.Alias)
	e.word("tenant", r.Tenant)
	e.number("status", int64(r.Status))
	e.word("code", r.Code)
	e.outcome(r)
	if r.Decision != nil {
		e.decision(r)
	}
	return e.close()
}

func (e *encoder) outcome(r *record.Record) {
	e.seconds("duration", r.Duration)
	e.seconds("first_byte", r.FirstByte)
	e.seconds("gateway", r.Gateway)
	e.seconds("queued", r.Queued)
	e.count("body_bytes", r.BodyBytes)
	e.count("attempts", int64(r.Attempts))
	e.known("prompt_tokens", r.PromptTokens)
	e.known("cached_tokens", r.CachedTokens)
	e.known("output_tokens", r.OutputTokens)
	e.flag("streamed", r.Streamed)
}

func (e *encoder) decision(r *record.Record) {
	d := r.Decision
	e.word("backend", d.Backend)
	e.word("owner", d.Owner)
	e.word("phase", d.Phase)
	e.word("policy", d.Policy)
	e.word("reason", string(d.Reason))
	e.number("chain_blocks", int64(d.ChainBlocks))
	e.number("matched_blocks", int64(d.MatchedBlocks))
	e.number("novel_blocks", int64(d.NovelBlocks))
	e.word("block_unit", d.BlockUnit)
	e.flag("degraded", d.Degraded)
	e.word("index", d.Index)
	e.word("fallback", d.Fallback)
	e.count("predicted_cached_tokens", int64(d.PredictedTokens))
}

// encoder appends members of a flat object, as JSON or as key=value.
type encoder struct {
	b    []byte
	json bool
	some bool // a member is there
}

func (e *encoder) open() {
	if e.json {
		e.b = append(e.b, '{')
	}
}

func (e *encoder) close() []byte {
	if e.json {
		e.b = append(e.b, '}')
	}
	return append(e.b, '\n')
}

// key begins a member and returns where, for one that comes to nothing.
func (e *encoder) key(name string) (at int) {
	at = len(e.b)
	switch {
	case e.some && e.json:
		e.b = append(e.b, ',')
	case e.some:
		e.b = append(e.b, ' ')
	}
	if e.json {
		e.b = append(e.b, '"')
		e.b = append(e.b, name...)
		e.b = append(e.b, '"', ':')
		return at
	}
	e.b = append(e.b, name...)
	e.b = append(e.b, '=')
	return at
}

// word is left out where it is empty. What clients and peers chose is escaped, so
// that it can't begin a line of its own.
func (e *encoder) word(name, v string) {
	if v == "" {
		return
	}
	e.key(name)
	e.some = true
	v = cut(v)
	switch {
	case e.json:
		e.b, _ = jsontext.AppendQuote(e.b, v) // v is valid UTF-8
	case plain(v):
		e.b = append(e.b, v...)
	default:
		e.b = strconv.AppendQuote(e.b, v)
	}
}

// cut shortens v to maxValue bytes of valid UTF-8.
func cut(v string) string {
	if len(v) > maxValue {
		end := maxValue
		for end > 0 && !utf8.RuneStart(v[end]) {
			end--
		}
		v = v[:end]
	}
	if !utf8.ValidString(v) {
		return strings.ToValidUTF8(v, "\ufffd")
	}
	return v
}

// plain is whether v can stand without quotes.
func plain(v string) bool {
	for i := range len(v) {
		if c := v[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\' {
			return false
		}
	}
	return true
}

func (e *encoder) client(name string, c *clients, r *record.Record) {
	at := e.key(name)
	if e.json {
		e.b = append(e.b, '"')
	}
	before := len(e.b)
	e.b = c.append(e.b, r.Client)
	if len(e.b) == before {
		e.b = e.b[:at]
		return
	}
	e.some = true
	if e.json {
		e.b = append(e.b, '"')
	}
}

func (e *encoder) number(name string, v int64) {
	e.key(name)
	e.some = true
	e.b = strconv.AppendInt(e.b, v, 10)
}

// count is left out where it is 0.
func (e *encoder) count(name string, v int64) {
	if v != 0 {
		e.number(name, v)
	}
}

// known is left out where it is negative.
func (e *encoder) known(name string, v int64) {
	if v >= 0 {
		e.number(name, v)
	}
}

// seconds is left out where it did not happen.
func (e *encoder) seconds(name string, d time.Duration) {
	if d <= 0 {
		return
	}
	e.key(name)
	e.some = true
	e.b = strconv.AppendFloat(e.b, float64(d.Microseconds())/1e6, 'f', -1, 64)
}

func (e *encoder) flag(name string, v bool) {
	if v {
		e.key(name)
		e.some = true
		e.b = append(e.b, "true"...)
	}
}

func (e *encoder) time(name string, t time.Time) {
	e.key(name)
	e.some = true
	if e.json {
		e.b = append(e.b, '"')
	}
	e.b = t.UTC().AppendFormat(e.b, "2006-01-02T15:04:05.000Z")
	if e.json {
		e.b = append(e.b, '"')
	}
}
