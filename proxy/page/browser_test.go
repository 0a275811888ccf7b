package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// programs are what a Chromium may be called.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}

// shared is the one browser of all tests; each has a tab of its own.
var shared struct {
	sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	absent string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cancel != nil {
		shared.cancel()
	}
	os.Exit(code)
}

func startBrowser() {
	program := ""
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		shared.absent = "no Chromium is installed: looked for " + strings.Join(programs, ", ")
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.DisableGPU, chromedp.Flag("force-color-profile", "srgb"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to start as root with one
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	shared.ctx, shared.cancel = ctx, func() { cancel(); stop() }
	if err := chromedp.Do(ctx); err != nil {
		shared.absent = "Chromium does not start: " + err.Error()
	}
}

// tab is a browser's tab that shows a node's page, and what happened in it.
type tab struct {
	*testing.T
	ctx  context.Context
	node *fakeNode

	mu     sync.Mutex
	faults []string
	urls   []string
}

// view is how a page is looked at.
type view struct {
	width, height int64
	dark          bool
	query         string
}

var desk = view{width: 1440, height: 900}

func open(t *testing.T, url string, v view) *tab {
	t.Helper()
	shared.Do(startBrowser)
	if shared.absent != "" {
		t.Skip(shared.absent)
	}
	ctx, cancel := chromedp.NewContext(shared.ctx)
	t.Cleanup(cancel)
	b := &tab{T: t, ctx: ctx}
	b.do() // opens the tab
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(stop)
	b.ctx = ctx
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	b.look(v)
	b.do(chromedp.Navigate(url + "/" + v.query))
	return b
}

func openFake(t *testing.T, f *fakeNode, v view) *tab {
	t.Helper()
	b := open(t, f.URL, v)
	b.node = f
	return b
}

// look changes how the page is looked at.
func (b *tab) look(v view) {
	b.Helper()
	scheme := "light"
	if v.dark {
		scheme = "dark"
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: v.width, Height: v.height, DeviceScaleFactor: 1, Mobile: v.width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// note keeps what must not happen, and every address that was asked.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			b.faults = append(b.faults, fmt.Sprintf("console %s: %s", e.Type, e.Args[0].Value))
		}
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, fmt.Sprintf("exception: %+v", e.ExceptionDetails))
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			b.faults = append(b.faults, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		b.urls = append(b.urls, e.Request.URL)
	}
}

// clean fails where the browser complained or asked somebody else.
func (b *tab) clean() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.Error(fault)
	}
	for _, url := range b.urls {
		if b.node != nil && !strings.HasPrefix(url, b.node.URL+"/") && !strings.HasPrefix(url, "data:") {
			b.Errorf("the page asked %s", url)
		}
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// call runs a command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// js evaluates an expression into v, waiting where it is a promise.
func (b *tab) js(expression string, v any) {
	b.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise))
	if err == nil && v != nil {
		err = json.Unmarshal(got, v)
	}
	if err != nil {
		b.Fatalf("%.200s: %v in %q", expression, err, got)
	}
}

func (b *tab) text(expression string) (s string) {
	b.Helper()
	b.js("String("+expression+")", &s)
	return s
}

// await waits until an expression is true.
func (b *tab) await(expression string) {
	b.Helper()
	var ok bool
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if b.js("!!("+expression+")", &ok); ok {
			return
		}
		if time.Now().After(end) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.Fatalf("waited in vain for %s; the browser said %q", expression, b.faults)
		}
	}
}

const isLive = `document.getElementById('connection')?.dataset.state === 'live'`

func (b *tab) awaitLive() {
	b.Helper()
	b.await(isLive)
}

// shot keeps a picture of the page where KVCA_SCREENSHOTS names a folder; whole is
// the page beyond the window, too.
func (b *tab) shot(name string, whole bool) {
	b.Helper()
	folder := os.Getenv("KVCA_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole})
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture.Data, 0o644); err != nil {
		b.Fatal(err)
	}
}
