package page

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// axe is the accessibility checker, where it has been fetched: it is not ours to keep.
const axePath = "../../.tools/axe-core/axe.min.js"

// checkAccess fails for each violation that axe finds in a part of the page.
func (b *tab) checkAccess(part, when string) {
	b.Helper()
	var found []string
	b.js(fmt.Sprintf(`axe.run(%q, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then((r) =>
		r.violations.map((v) => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ' (' + n.failureSummary.replace(/\s+/g, ' ') + ')').join('; ')))`, part), &found)
	for _, f := range found {
		b.Errorf("%s: %s", when, f)
	}
}

func TestThePageIsAccessible(t *testing.T) {
	axe, err := os.ReadFile(axePath)
	if err != nil {
		t.Skipf("axe-core is not there: %v", err)
	}
	b := openFake(t, newFake(t, 3, 4, ill), desk)
	b.awaitLive()
	b.js(string(axe)+"; 0", nil)
	b.js(`document.querySelectorAll('details').forEach((d) => { d.open = true; })`, nil)
	b.js(`document.getElementById('example').click(); document.getElementById('explain-go').click()`, nil)
	b.await(`document.querySelector('#explanation-detail tbody tr')`)
	b.checkAccess("html", "light")
	b.look(view{width: 400, height: 800, dark: true})
	b.checkAccess("html", "dark and narrow")
	b.js(`document.querySelector('[aria-label="Drain gpu-001"]').click()`, nil)
	b.await(`document.getElementById('dialog').open`)
	b.checkAccess("#dialog", "a question")
	b.js(`document.getElementById('dialog-close').click(); document.querySelector('#backend-list tbody button').click()`, nil)
	b.await(`document.getElementById('dialog').open && document.querySelector('#dialog dl')`)
	b.checkAccess("#dialog", "a backend's details")
	b.js(`document.getElementById('dialog-close').click()`, nil)
	b.node.set(func() { b.node.down = true })
	b.await(`!document.getElementById('outage').hidden`)
	b.checkAccess("#outage", "an outage")
	b.look(desk)
	b.checkAccess("#outage", "an outage in the light")
}

func TestANarrowPageDoesNotScrollSideways(t *testing.T) {
	b := openFake(t, newFake(t, 8, 240, ill), desk)
	b.awaitLive()
	b.js(`document.getElementById('example').click(); document.getElementById('explain-go').click()`, nil)
	b.await(`document.querySelector('#explanation-detail tbody tr')`)
	for _, width := range []int64{320, 400, 760, 1024} {
		b.look(view{width: width, height: 800})
		b.js(`document.querySelectorAll('details').forEach((d) => { d.open = true; })`, nil)
		b.await(fmt.Sprintf(`document.querySelector('#map svg').clientWidth < %d`, width)) // it has been laid out anew
		if got := b.text(`document.scrollingElement.scrollWidth`); got != fmt.Sprint(width) {
			t.Errorf("at %d px the page is %s px wide", width, got)
		}
		b.js(`document.querySelectorAll('details').forEach((d) => { d.open = false; }); scrollTo(0, 0)`, nil)
		b.shot(fmt.Sprintf("%d-px", width), false)
		b.shot(fmt.Sprintf("%d-px-whole", width), true)
	}
	b.clean()
}

func TestDarkAndLightFollowTheSystemAndTheToggle(t *testing.T) {
	b := openFake(t, newFake(t, 3, 8), view{width: 1440, height: 900, dark: true})
	b.awaitLive()
	light := func() int {
		text := b.text(`getComputedStyle(document.body).backgroundColor`)
		first, _, _ := strings.Cut(strings.TrimPrefix(text, "rgb("), ",")
		n, err := strconv.Atoi(first)
		if err != nil {
			t.Fatalf("the ground is %q", text)
		}
		return n
	}
	if n := light(); n > 60 {
		t.Errorf("the ground is %d light where the system is dark", n)
	}
	b.shot("dark", false)
	b.shot("dark-whole", true)
	b.js(`document.getElementById('theme').click()`, nil)
	if n := light(); n < 200 || b.text(`document.getElementById('theme').textContent`) != "Theme: light" {
		t.Errorf("the ground is %d light after the toggle", n)
	}
	b.shot("light", false)
	b.do(chromedp.Navigate(b.node.URL + "/"))
	b.awaitLive()
	if n := light(); n < 200 {
		t.Errorf("the ground is %d light after a reload", n)
	}
	b.clean()
}

// where is a script that names what has the focus, and how that shows.
const where = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return null;
	const s = getComputedStyle(e);
	const box = e.querySelector(':scope > .box');
	const shows = (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2) || (box && parseFloat(getComputedStyle(box).strokeWidth) >= 3);
	e.dataset.reached = '1';
	return (shows ? '' : 'INVISIBLE ') + (e.id || e.getAttribute('aria-label') || e.textContent || e.tagName).trim().slice(0, 40);
})()`

func TestEverythingIsReachedByKeyboard(t *testing.T) {
	b := openFake(t, newFake(t, 3, 4), desk)
	b.awaitLive()
	b.js(`document.getElementById('hold').click(); document.body.focus()`, nil)
	all := `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter((e) => !e.disabled && e.getClientRects().length && e.checkVisibility())`
	for step := 0; ; step++ {
		b.do(chromedp.KeyEvent(kb.Tab))
		var at *string
		b.js(where, &at)
		if at == nil || step > 150 {
			break
		}
		if strings.HasPrefix(*at, "INVISIBLE") {
			t.Errorf("the focus does not show on %s", *at)
		}
	}
	if missed := b.text(`JSON.stringify(` + all + `.filter((e) => !e.dataset.reached).map((e) => e.outerHTML.slice(0, 120)))`); missed != "[]" {
		t.Errorf("Tab does not reach %s", missed)
	}
	b.clean()
}

func TestEnterExplains(t *testing.T) {
	b := openFake(t, newFake(t, 3, 4), desk)
	b.awaitLive()
	b.js(`document.getElementById('endpoint').focus()`, nil)
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // the example, which leads to the body
	b.await(`document.activeElement.id === 'request' && document.activeElement.value.includes('messages')`)
	b.do(chromedp.KeyEvent(kb.Tab))
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.querySelectorAll('#explanation-detail tbody tr').length === 4`)
	b.js(`document.getElementById('explanation-detail').replaceChildren()`, nil)
	b.js(`document.getElementById('request').focus()`, nil)
	b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl))) // with Control
	b.await(`document.querySelectorAll('#explanation-detail tbody tr').length === 4`)
	b.clean()
}
