package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func ill(f *fakeNode) { f.ill = true }

func (f *fakeNode) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeNode) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func TestALargeClusterIsShown(t *testing.T) {
	b := openFake(t, newFake(t, 8, 240, ill), desk)
	b.awaitLive()
	for expression, want := range map[string]string{
		`document.title`: "gw-1 · KVCA",
		`document.querySelectorAll('#map a.node').length`:                "8",
		`document.querySelectorAll('#map .square').length`:               "240",
		`document.querySelectorAll('#backend-list tbody tr').length`:     "25",
		`document.querySelectorAll('#tiles canvas').length`:              "6",
		`document.querySelectorAll('#decision-list tbody tr').length`:    "14",
		`document.querySelectorAll('#sources tbody tr').length`:          "12",
		`document.querySelector('#attention .bad .mark').textContent`:    "Fault",
		`document.querySelector('#pager span').textContent`:              "1 to 25 of 240",
		`document.querySelectorAll('#tenants tbody tr').length`:          "2",
		`document.querySelector('#tiles .value').textContent !== '–'`:    "true",
		`document.querySelectorAll('#map path.link.down').length`:        "1",
		`document.querySelectorAll('#map .square.unhealthy').length > 0`: "true",
		`document.querySelectorAll('#reasons .shares li').length`:        "5",
	} {
		if got := b.text(expression); got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
	b.shot("8-nodes-240-backends", false)
	b.shot("8-nodes-240-backends-whole", true)
	b.clean()
}

func TestOneNodeAndManyNodesFitTheMap(t *testing.T) {
	for _, c := range []struct{ nodes, backends int }{{1, 4}, {1, 1000}, {3, 8}, {64, 1000}} {
		t.Run(fmt.Sprintf("nodes=%d,backends=%d", c.nodes, c.backends), func(t *testing.T) {
			b := openFake(t, newFake(t, c.nodes, c.backends), desk)
			b.awaitLive()
			b.await(fmt.Sprintf(`document.querySelectorAll('#map a.node').length === %d`, c.nodes))
			if got := b.text(`[...document.querySelectorAll('#map .square')].length <= 704`); got != "true" {
				t.Error("more squares than the map is meant to have")
			}
			outside := `(() => { const map = document.getElementById('map').getBoundingClientRect();
				return [...document.querySelectorAll('#map .box')].filter((e) => { const r = e.getBoundingClientRect();
					return r.left < map.left - 1 || r.right > map.right + 1 || r.bottom > map.bottom + 1; }).length; })()`
			if got := b.text(outside); got != "0" {
				t.Errorf("%s boxes are outside the map", got)
			}
			b.shot(fmt.Sprintf("%d-nodes-%d-backends", c.nodes, c.backends), false)
			b.clean()
		})
	}
}

func TestTheTableIsSortedFilteredAndPaged(t *testing.T) {
	b := openFake(t, newFake(t, 3, 1000, ill), desk)
	b.awaitLive()
	rows := `[...document.querySelectorAll('#backend-list tbody tr')]`
	first := rows + `[0].querySelector('button').textContent`
	b.js(`document.querySelector('#pager button:last-child').click()`, nil)
	if got := b.text(first); got != "gpu-026" {
		t.Errorf("the second page begins with %s", got)
	}
	b.js(`document.querySelectorAll('#backend-list .sort')[1].click()`, nil)
	if got := b.text(rows + `[0].querySelector('.state').textContent`); got != "unhealthy" {
		t.Errorf("sorted by health, the first is %s", got)
	}
	if got := b.text(`document.querySelectorAll('#backend-list th')[1].getAttribute('aria-sort')`); got != "ascending" {
		t.Errorf("aria-sort is %s", got)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#find"), "gpu-77 owner:gw-2"))
	b.await(rows + `.length === 3 || ` + rows + `.length === 4`)
	b.do(chromedp.SendKeys(chromedp.CSS("#find"), " nothing-like-it"))
	b.await(`document.querySelector('#backend-list .empty').textContent === 'No backend matches.'`)
	b.clean()
}

// lines is how many lines of text elements take, at most.
const lines = `((select) => Math.max(...[...document.querySelectorAll(select)].map((e) => { const r = document.createRange(); r.selectNodeContents(e);
	return new Set([...r.getClientRects()].map((c) => Math.round(c.top))).size; })))`

func TestNamesAndTimesStandOnOneLine(t *testing.T) {
	b := openFake(t, newFake(t, 3, 8, ill), view{width: 1400, height: 900})
	b.awaitLive()
	b.await(`document.querySelectorAll('#decision-list tbody tr').length > 0`)
	for _, part := range []string{"#decision-list td:first-child button", "#decision-list td:nth-child(2)", "#members th[scope=row] > span:first-child", "#backend-list th button", "#backend-list td:nth-child(9)"} {
		if got := b.text(lines + fmt.Sprintf("(%q)", part)); got != "1" {
			t.Errorf("%s takes %s lines", part, got)
		}
	}
	for _, part := range []string{"members", "decision-list", "backend-list"} {
		if got := b.text(fmt.Sprintf(`(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.getElementById(%q))`, part)); got != "0" {
			t.Errorf("%s is %s px wider than its place", part, got)
		}
	}
	b.shot("1400-px", true)
	b.clean()
}

func TestAPageThatDoesNotStartSaysSo(t *testing.T) {
	b := openFake(t, newFake(t, 1, 4, func(f *fakeNode) { f.missing = "/page/series.js" }), view{width: 1440, height: 900, query: "?speed=50"})
	b.await(`!document.getElementById('late').hidden && document.getElementById('loading').hidden`)
	b.shot("late", false)
	b.node.set(func() { b.node.missing = "" })
	b.js(`document.querySelector('#late a').click()`, nil)
	b.awaitLive()
	b.js(`new Promise((done) => setTimeout(done, 400))`, nil) // twice as long as it waited
	if got := b.text(`document.getElementById('late').hidden`); got != "true" {
		t.Error("a page that runs says that it does not")
	}
}

func TestAnExampleHasBlocks(t *testing.T) {
	b := openFake(t, newFake(t, 1, 4), desk)
	b.awaitLive()
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"} {
		b.js(fmt.Sprintf(`document.getElementById('endpoint').value = %q; document.getElementById('example').click()`, path), nil)
		var size int
		if b.js(`document.getElementById('request').value.length`, &size); size < 1200 {
			t.Errorf("%s: the example has %d characters, want more than two blocks", path, size)
		}
	}
}

func TestANodeWithoutBackendsSaysWhatToDo(t *testing.T) {
	b := openFake(t, newFake(t, 1, 0), desk)
	b.awaitLive()
	if got := b.text(`document.querySelector('#backend-list .empty').innerText`); !strings.Contains(got, "--backend") || !strings.Contains(got, b.node.URL+"/backends") {
		t.Errorf("the empty table says %q", got)
	}
	b.shot("no-backends", false)
	b.clean()
}

func TestAnExplanationIsATable(t *testing.T) {
	b := openFake(t, newFake(t, 3, 240), desk)
	b.awaitLive()
	b.js(`document.getElementById('example').click()`, nil)
	b.js(`document.getElementById('explain-go').click()`, nil)
	b.await(`document.querySelectorAll('#explanation-detail tbody tr').length === 50`)
	if got := b.text(`document.querySelector('#explanation').textContent`); !strings.Contains(got, "holds the longest known prefix") || !strings.Contains(got, "12 of 14 blocks") {
		t.Errorf("the explanation says %q", got)
	}
	if got := b.text(`document.querySelector('#explanation-detail tbody tr').className`); got != "chosen" {
		t.Errorf("the first candidate is %q, want the chosen one", got)
	}
	if got := b.text(`JSON.parse(document.querySelector('#explanation-detail pre').textContent).candidates.length`); got != "240" {
		t.Errorf("the JSON has %s candidates", got)
	}
	b.js(`document.getElementById('explain').scrollIntoView()`, nil)
	b.shot("explanation", false)
	b.clean()
}

func TestARefusedBodyIsAnsweredInWords(t *testing.T) {
	b := openFake(t, newFake(t, 1, 4), desk)
	b.awaitLive()
	b.js(`document.getElementById('explain-go').click()`, nil)
	b.await(`document.querySelector('#explanation .fault')?.textContent.includes('no request body yet')`)
	b.do(chromedp.SendKeys(chromedp.CSS("#request"), `{"model"`))
	b.js(`document.getElementById('explain-go').click()`, nil)
	b.await(`document.querySelector('#explanation .fault')?.textContent.includes('invalid_json')`)
}

func TestADecisionIsShownInDetail(t *testing.T) {
	b := openFake(t, newFake(t, 3, 12), desk)
	b.awaitLive()
	// The rows are held while one of them has the focus; a quarter has candidates.
	b.js(`document.querySelector('#decision-list button').focus()`, nil)
	for i := range 14 {
		b.js(fmt.Sprintf(`document.querySelectorAll('#decision-list tbody button')[%d].click()`, i), nil)
		b.await(`document.getElementById('dialog').open`)
		if b.text(`document.querySelectorAll('#dialog-body tbody tr').length`) == "12" {
			break
		}
		b.js(`document.getElementById('dialog-close').click()`, nil)
	}
	if got := b.text(`document.querySelectorAll('#dialog-body tbody tr').length`); got != "12" {
		t.Fatalf("no decision shows its 12 candidates: %s rows", got)
	}
	if got := b.text(`document.activeElement.id`); got != "dialog-title" {
		t.Errorf("the focus is on %q, want the dialog's title", got)
	}
	b.shot("decision", false)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await(`!document.getElementById('dialog').open && document.getElementById('dialog-body').children.length === 0`)
	b.clean()
}

func TestABackendIsDrainedOnceItIsConfirmed(t *testing.T) {
	b := openFake(t, newFake(t, 3, 4), desk)
	b.awaitLive()
	press := `document.querySelector('[aria-label="Drain gpu-002"]').click()`
	b.js(press, nil)
	b.await(`document.getElementById('dialog').open`)
	b.shot("drain", false)
	b.js(`document.querySelector('#dialog-body button').click()`, nil)
	b.await(`!document.getElementById('dialog').open`)
	b.node.set(func() {
		if b.node.drained["gpu-002"] {
			t.Error("drained though it was cancelled")
		}
	})
	b.js(press, nil)
	b.js(`document.querySelector('#dialog-body .primary').click()`, nil)
	b.await(`document.querySelector('[aria-label="Undrain gpu-002"]')`)
	b.js(`document.querySelector('[aria-label="Undrain gpu-002"]').click()`, nil)
	b.js(`document.querySelector('#dialog-body .primary').click()`, nil)
	b.await(`document.querySelector('[aria-label="Drain gpu-002"]')`)
	b.clean()
}

func TestATokenIsAskedForAndKept(t *testing.T) {
	b := openFake(t, newFake(t, 1, 4, func(f *fakeNode) { f.token = "secret" }), desk)
	b.await(`!document.getElementById('login').hidden`)
	b.shot("token", false)
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), "wrong"+kb.Enter))
	b.await(`document.getElementById('login-note').textContent.includes('did not take')`)
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), "secret"+kb.Enter))
	b.awaitLive()
	if got := b.text(`document.getElementById('login').hidden && sessionStorage.getItem('kvca-token')`); got != "secret" {
		t.Errorf("the tab keeps %q", got)
	}
	b.js(`document.getElementById('forget').click()`, nil)
	b.await(`!document.getElementById('login').hidden && sessionStorage.getItem('kvca-token') === null`)
}

func TestAnOutageKeepsWhatWasKnown(t *testing.T) {
	b := openFake(t, newFake(t, 3, 8), view{width: 1440, height: 900, query: "?speed=5"})
	b.awaitLive()
	b.node.set(func() { b.node.down = true })
	b.await(`!document.getElementById('outage').hidden`)
	if got := b.text(`document.getElementById('outage').textContent`); !strings.Contains(got, "gw-1 has not answered since") || !strings.Contains(got, "What you see is from") {
		t.Errorf("the outage says %q", got)
	}
	if got := b.text(`document.querySelectorAll('#backend-list tbody tr').length`); got != "8" {
		t.Errorf("%s rows are left of 8", got)
	}
	b.shot("outage", false)
	b.node.set(func() { b.node.down = false })
	b.js(`document.getElementById('retry').click()`, nil)
	b.await(`document.getElementById('outage').hidden && ` + isLive)
}

func TestAHiddenPageDoesNotAsk(t *testing.T) {
	b := openFake(t, newFake(t, 1, 4), view{width: 1440, height: 900, query: "?speed=20"})
	b.awaitLive()
	hide := func(hidden bool) {
		b.js(fmt.Sprintf(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => %v }); document.dispatchEvent(new Event('visibilitychange'))`, hidden), nil)
	}
	hide(true)
	b.await(`document.getElementById('connection').dataset.state === 'paused'`)
	b.js(`new Promise((done) => setTimeout(done, 100))`, nil) // what had been sent arrives
	before := b.node.requests()
	b.js(`new Promise((done) => setTimeout(done, 400))`, nil) // eight rounds
	if after := b.node.requests(); after != before {
		t.Errorf("%d requests while hidden", after-before)
	}
	hide(false)
	b.awaitLive()
	b.clean()
}

func TestAMinuteOfTrafficLeavesNothingBehind(t *testing.T) {
	b := openFake(t, newFake(t, 3, 100, func(f *fakeNode) { f.stepped = true }), view{width: 1440, height: 900, query: "?speed=100"})
	b.awaitLive()
	newest := func() (seq int) {
		b.js(`fetch('/decisions?after=1000000000').then((r) => r.json()).then((a) => a.newest)`, &seq)
		return seq
	}
	pass := func(seconds int) {
		for end := b.now().Add(time.Duration(seconds) * time.Second); b.now().Before(end); time.Sleep(10 * time.Millisecond) {
			if b.ctx.Err() != nil {
				t.Fatal("the page does not ask any more")
			}
		}
	}
	pass(30)
	heap, nodes := b.memory()
	before := newest()
	pass(60)
	heapAfter, nodesAfter := b.memory()
	if seen := newest() - before; seen < 60*20 {
		t.Errorf("only %d requests in that minute", seen)
	}
	t.Logf("heap %.0f to %.0f kB, nodes %d to %d", heap/1e3, heapAfter/1e3, nodes, nodesAfter)
	// A row that is kept each second would be some 20,000 of them.
	if nodesAfter > nodes+1000 {
		t.Errorf("%d nodes of the document became %d", nodes, nodesAfter)
	}
	if heapAfter > heap+1e6 {
		t.Errorf("a heap of %.0f kB became %.0f kB", heap/1e3, heapAfter/1e3)
	}
	b.clean()
}

// now is the node's time.
func (b *tab) now() (now time.Time) {
	b.node.set(func() { now = b.node.clock })
	return now
}

// memory is the heap in bytes and the nodes of the document, what is garbage apart.
func (b *tab) memory() (heap float64, nodes int64) {
	b.Helper()
	for range 2 {
		call(b, heapprofiler.CollectGarbage, cdp.Empty{})
		b.js(`new Promise((done) => setTimeout(done, 50))`, nil) // finalizers
	}
	return call(b, runtime.GetHeapUsage, cdp.Empty{}).UsedSize, call(b, memory.GetDOMCounters, cdp.Empty{}).Nodes
}

// The fake's answers are what we believe that a node says; this one is a node.
func TestARealNodeIsShown(t *testing.T) {
	b := open(t, RealNode(t), desk)
	b.awaitLive()
	b.await(`document.querySelectorAll('#decision-list tbody tr').length === 3`)
	for expression, want := range map[string]string{
		`document.getElementById('node').textContent`:                                      "gw-1",
		`[...document.querySelectorAll('#backend-list .state')].map((e) => e.textContent)`: "healthy,healthy",
		`document.querySelectorAll('#map .cell').length`:                                   "2",
		`document.querySelectorAll('#decision-list .reason')[0].textContent`:               "Longest prefix",
		`/undefined|NaN|null|\[object/.test(document.body.innerText)`:                      "false",
		`document.querySelectorAll('#tiles .value')[2].textContent`:                        "60 %",
		`document.getElementById('index-state').textContent.startsWith('Off')`:             "true",
	} {
		b.await(`String(` + expression + `) === ` + fmt.Sprintf("%q", want))
	}
	b.js(`document.getElementById('example').click(); document.getElementById('explain-go').click()`, nil)
	b.await(`document.querySelectorAll('#explanation-detail tbody tr').length === 2`)
	b.js(`document.querySelector('[aria-label="Drain gpu-1"]').click(); document.querySelector('#dialog-body .primary').click()`, nil)
	b.await(`document.querySelector('[aria-label="Undrain gpu-1"]')`)
	b.clean()
}
