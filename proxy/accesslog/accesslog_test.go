package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"kvca/proxy/record"
	"kvca/router"
	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// full is a request of which all is known.
func full() *record.Record {
	return &record.Record{
		ID: "req-1", Trace: "0af7651916cd43dd8448eb211c80319c", Client: netip.MustParseAddr("192.0.2.77"),
		Method: "POST", Endpoint: "/v1/chat/completions", Model: "llama", Alias: "best", Tenant: "acme",
		Began: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.FixedZone("", 3600)), Duration: 1500 * time.Millisecond,
		FirstByte: 61 * time.Millisecond, Gateway: 120 * time.Microsecond, Queued: 2 * time.Millisecond,
		Status: 200, Code: "stream_broken", BodyBytes: 2048, Attempts: 2, PromptTokens: 500, CachedTokens: 400, OutputTokens: 100, Streamed: true,
		Decision: &router.Decision{
			Phase: "follow-up", Policy: "cost", Reason: router.ReasonHit, ChainBlocks: 10, MatchedBlocks: 8, NovelBlocks: 2, Backend: "gpu-1",
			Owner: "gw-2", Degraded: true, BlockUnit: "cbr", Index: "fallback", Fallback: "deadline", PredictedTokens: 300,
		},
	}
}

// buffer is standard output in tests.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// begin opens a log and closes it when the test ends.
func begin(t testing.TB, out io.Writer, change func(*Config)) *Log {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Path, cfg.standard, cfg.Logger = Standard, out, slog.New(slog.DiscardHandler)
	if change != nil {
		change(&cfg)
	}
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

// lineOf is the line of one request.
func lineOf(t testing.TB, r *record.Record, change func(*Config)) string {
	t.Helper()
	var out buffer
	l := begin(t, &out, change)
	l.Ended(r)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.text()
}

func TestLineHasAllThatIsKnown(t *testing.T) {
	const want = `{"time":"2026-01-02T02:04:05.678Z","kept":"error","request_id":"req-1","trace_id":"0af7651916cd43dd8448eb211c80319c",` +
		`"client":"192.0.2.0/24","method":"POST","endpoint":"/v1/chat/completions","model":"llama","alias":"best","tenant":"acme","status":200,"code":"stream_broken",` +
		`"duration":1.5,"first_byte":0.061,"gateway":0.00012,"queued":0.002,"body_bytes":2048,"attempts":2,"prompt_tokens":500,"cached_tokens":400,"output_tokens":100,"streamed":true,` +
		`"backend":"gpu-1","owner":"gw-2","phase":"follow-up","policy":"cost","reason":"hit","chain_blocks":10,"matched_blocks":8,"novel_blocks":2,"block_unit":"cbr","degraded":true,` +
		`"index":"fallback","fallback":"deadline","predicted_cached_tokens":300}` + "\n"
	if got := lineOf(t, full(), nil); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	bare := &record.Record{Status: 404, PromptTokens: -1, CachedTokens: -1, OutputTokens: -1}
	if got, want := lineOf(t, bare, nil), `{"time":"0001-01-01T00:00:00.000Z","kept":"error","status":404}`+"\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

func TestTextLine(t *testing.T) {
	r := full()
	r.Model, r.Decision, r.Code = "two words\nkept=sample", nil, ""
	const want = `time=2026-01-02T02:04:05.678Z kept=sample request_id=req-1 trace_id=0af7651916cd43dd8448eb211c80319c client=192.0.2.0/24 method=POST endpoint=/v1/chat/completions model="two words\nkept=sample" alias=best tenant=acme status=200 ` +
		"duration=1.5 first_byte=0.061 gateway=0.00012 queued=0.002 body_bytes=2048 attempts=2 prompt_tokens=500 cached_tokens=400 output_tokens=100 streamed=true\n"
	if got := lineOf(t, r, func(c *Config) { c.Format = Text }); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDocumentationNamesEachField(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(lineOf(t, full(), nil)), &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !regexp.MustCompile(`(?m)^//\t.*\b` + name + `\b`).Match(doc) {
			t.Errorf("doc.go does not name %s", name)
		}
	}
}

func TestWhateverOthersChoseIsOneLineOfJSON(t *testing.T) {
	var out buffer
	l := begin(t, &out, nil)
	any := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "bytes")) })
	rapid.Check(t, func(rt *rapid.T) {
		r := full()
		r.Model, r.ID, r.Alias = any.Draw(rt, "model"), any.Draw(rt, "id"), rapid.String().Draw(rt, "alias")
		r.Decision.Backend = rapid.String().Draw(rt, "backend")
		line := l.format(nil, r, keptSample)
		if !json.Valid(line) || bytes.Count(line, []byte{'\n'}) != 1 || len(line) > maxLine {
			rt.Fatalf("%d bytes: %q", len(line), line)
		}
	})
}

func TestClientsAddress(t *testing.T) {
	r := full()
	for _, c := range []struct{ how, address, want string }{
		{ClientFull, "192.0.2.77", `"client":"192.0.2.77"`},
		{ClientFull, "::ffff:192.0.2.77", `"client":"192.0.2.77"`},
		{ClientNetwork, "192.0.2.77", `"client":"192.0.2.0/24"`},
		{ClientNetwork, "2001:db8:1:2::3%eth0", `"client":"2001:db8:1::/48"`},
		{ClientHash, "192.0.2.77", `"client":"`},
	} {
		r.Client = netip.MustParseAddr(c.address)
		if got := lineOf(t, r, func(cfg *Config) { cfg.Client = c.how }); !strings.Contains(got, c.want) {
			t.Errorf("%s of %s: %s", c.how, c.address, got)
		}
	}
	if got := lineOf(t, r, func(cfg *Config) { cfg.Client = ClientNone }); strings.Contains(got, "client") {
		t.Error(got)
	}
}

func TestHashTellsClientsApartAndNotWhoTheyAre(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.77"), netip.MustParseAddr("192.0.2.78")
	hash := func(secret string, a netip.Addr) string {
		return string(newClients(ClientHash, []byte(secret)).append(nil, a))
	}
	if x := hash("k", a); len(x) != 16 || x != hash("k", a) || x == hash("k", b) || x == hash("other", a) {
		t.Errorf("%s %s %s %s", x, hash("k", a), hash("k", b), hash("other", a))
	}
	if x, again := hash("", a), hash("", a); x == again {
		t.Error("without a secret, hashes can be computed by anyone")
	}
}

func TestErrorsAndSlowRequestsAreAlwaysKept(t *testing.T) {
	l := begin(t, io.Discard, func(c *Config) { c.Ratio, c.Slow = .25, 10*time.Second })
	for _, c := range []struct {
		status   int
		code     string
		duration time.Duration
		random   float64
		want     string
	}{
		{200, "", time.Second, .24, keptSample},
		{200, "", time.Second, .25, ""},
		{302, "", time.Second, .9, ""},
		{200, "", 10 * time.Second, .9, keptSlow},
		{404, "", time.Second, .9, keptError},
		{499, "", time.Second, .9, keptError},
		{500, "", time.Minute, .9, keptError},
		{200, "stream_broken", time.Second, .9, keptError},
		{0, "", time.Second, .9, keptError},
	} {
		l.random = func() float64 { return c.random }
		if got := l.keeps(&record.Record{Status: c.status, Code: c.code, Duration: c.duration}); got != c.want {
			t.Errorf("%+v: kept as %q", c, got)
		}
	}
}

// hung is an output that takes nothing until it is released.
type hung chan struct{}

func (h hung) Write(p []byte) (int, error) {
	<-h
	return len(p), nil
}

func TestFullBufferDropsAndCountsAndNeverWaits(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		out, reg := make(hung), prometheus.NewRegistry()
		l := begin(t, out, func(c *Config) { c.MaxBytes, c.Registerer = 2*maxLine, reg })
		l.Ended(full())
		time.Sleep(2 * flushAfter)
		synctest.Wait() // the writer hangs with the first line
		n := len(l.format(nil, full(), keptSample))
		const more = 10
		fit := 2 * maxLine / n
		for range fit + more {
			l.Ended(full())
		}
		if got := count(t, l.metrics.full); got != more {
			t.Errorf("%v lines were dropped, want %d", got, more)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Close(ctx); err == nil || !strings.Contains(err.Error(), "in time") {
			t.Errorf("close: %v", err)
		}
		l.Ended(full())
		if got := count(t, l.metrics.closed); got != 1 {
			t.Errorf("%v lines after the end", got)
		}
		close(out)
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := count(t, l.metrics.lines); got != float64(1+fit) {
			t.Errorf("%v lines were written, want %d", got, 1+fit)
		}
	})
}

func TestLinesAreWrittenTogetherSoonOrAtHalfTheBound(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var out buffer
		l := begin(t, &out, func(c *Config) { c.MaxBytes = 2 * maxLine })
		l.Ended(full())
		synctest.Wait()
		if out.text() != "" {
			t.Error("the first line was not kept for others")
		}
		time.Sleep(flushAfter)
		synctest.Wait()
		if strings.Count(out.text(), "\n") != 1 {
			t.Error("the line is not there in time")
		}
		for range maxLine/len(out.text()) + 1 {
			l.Ended(full())
		}
		synctest.Wait()
		if strings.Count(out.text(), "\n") == 1 {
			t.Error("half the bound waits")
		}
	})
}

func TestFileThatIsMovedAwayIsOpenedAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	s, err := openSink(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	now := time.Now()
	write := func(line string, at time.Duration) {
		t.Helper()
		if err := s.write([]byte(line), now.Add(at)); err != nil {
			t.Error(err)
		}
	}
	expect := func(path, want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v; want %q", filepath.Base(path), got, err, want)
		}
	}
	write("1\n", 0)
	os.Rename(path, path+".1")
	write("2\n", checkEvery/2) // it is not looked at so soon
	write("3\n", 2*checkEvery)
	expect(path+".1", "1\n2\n")
	expect(path, "3\n")
	os.Rename(path, path+".2")
	os.WriteFile(path, []byte("made\n"), 0o600)
	write("4\n", 4*checkEvery)
	expect(path, "made\n4\n")
	os.Truncate(path, 0)
	write("5\n", 4*checkEvery)
	expect(path, "5\n")
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l := begin(t, nil, func(c *Config) { c.Path = path })
	os.Rename(path, path+".1")
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Ended(full())
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); !json.Valid(got) {
		t.Errorf("the new file has %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("others may read the log: %v, %v", info.Mode(), err)
	}
	if err := begin(t, io.Discard, nil).Reopen(); err != nil {
		t.Errorf("standard output: %v", err)
	}
}

func TestFileThatCannotBeWrittenIsReportedOnce(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var log buffer
		out := &failing{}
		l := begin(t, out, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		for i := range 4 {
			out.bad.Lock()
			out.fails = i < 3
			out.bad.Unlock()
			l.Ended(full())
			time.Sleep(2 * flushAfter)
			synctest.Wait()
		}
		if text := log.text(); strings.Count(text, "can't be written") != 1 || strings.Count(text, "is written again") != 1 {
			t.Errorf("logged %s", text)
		}
		if got := count(t, l.metrics.failed); got != 3 {
			t.Errorf("%v lines were lost", got)
		}
	})
}

type failing struct {
	bad   sync.Mutex
	fails bool
}

func (f *failing) Write(p []byte) (int, error) {
	f.bad.Lock()
	defer f.bad.Unlock()
	if f.fails {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestFaultsOfTheSettingsAreAllTold(t *testing.T) {
	_, err := Open(Config{Format: "xml", Ratio: 2, Slow: -1, Client: "name"})
	if err == nil {
		t.Fatal("they were taken")
	}
	for _, want := range []string{"no file", `"xml"`, "ratio 2", "slow", `"name"`, "max bytes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told: %v", want, err)
		}
	}
	cfg := DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "no", "such", "folder")
	if _, err := Open(cfg); err == nil {
		t.Error("a folder that is not there was taken")
	}
}

func BenchmarkEnded(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*Config)
	}{
		{"json", func(c *Config) { c.MaxBytes = 64 << 20 }},
		{"text", func(c *Config) { c.Format, c.MaxBytes = Text, 64<<20 }},
		{"left out", func(c *Config) { c.Ratio = 0 }},
		{"full buffer", func(c *Config) { c.MaxBytes, c.standard = 2*maxLine, make(hung) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := begin(b, io.Discard, c.change)
			r := full()
			r.Code = ""
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Ended(r)
				}
			})
			if h, ok := l.cfg.standard.(hung); ok {
				close(h)
			}
		})
	}
}
