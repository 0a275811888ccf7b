package cbr

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hostile are bodies made to hang or bloat a reader, with the fault they give, if
// any.
var hostile = sync.OnceValue(func() map[string]struct{ body, code string } {
	var duplicates, deepDuplicates, members, collisions, nested strings.Builder
	for i := range 100_000 {
		duplicates.WriteString(`,"k":` + strconv.Itoa(i))
		members.WriteString(`,"k` + strconv.Itoa(i*7919%100_000) + `":` + strconv.Itoa(i))
		fmt.Fprintf(&collisions, `,"%sx":1`, strings.Repeat("a", i%100))
	}
	deepDuplicates.WriteString(`"a":0`)
	for i := range 100_000 {
		deepDuplicates.WriteString(`,"b` + strconv.Itoa(i%3) + `":` + strconv.Itoa(i))
	}
	nested.WriteString(strings.Repeat(`{"a":1,"a":`, 250))
	nested.WriteString(`"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", 250))
	wrap := func(members string) string { return `{"model":"m"` + members + `}` }
	mega := strings.Repeat("1", 1<<20)
	return map[string]struct{ body, code string }{
		"10 MB of arrays":           {strings.Repeat("[", 10<<20), CodeNotAnObject},
		"10 MB of arrays in a body": {`{"a":` + strings.Repeat("[", 10<<20), CodeTooDeep},
		"10 MB of objects":          {strings.Repeat(`{"":`, 10<<18), CodeTooDeep},
		"1 MB of digits":            {wrap(`,"a":` + mega), ""},
		"1 MB of fraction":          {wrap(`,"a":0.` + mega), ""},
		"1 MB of exponent":          {wrap(`,"a":1e` + mega + `,"b":-1.5e-` + mega), ""},
		"1 MB of zeros":             {wrap(`,"a":1` + strings.Repeat("0", 1<<20)), ""},
		"a huge number":             {wrap(`,"a":1e999999999,"b":[1e999999999],"c":-0.1e-999999999999999999`), ""},
		"1 MB of escapes":           {wrap(`,"a":"` + strings.Repeat(`\u00e9\n\ud800`, 1<<16) + `"`), ""},
		"1 MB of backslashes":       {wrap(`,"a":"` + strings.Repeat(`\\`, 1<<19) + `"`), ""},
		"100k duplicates":           {wrap(duplicates.String()), ""},
		"100k deep duplicates":      {wrap(`,"x":[{` + deepDuplicates.String() + `}]`), ""},
		"100k members":              {wrap(members.String()), ""},
		"100k deep members":         {wrap(`,"x":{` + members.String()[1:] + `}`), ""},
		"100k similar members":      {wrap(collisions.String()), ""},
		"100k members of a message": {wrap(`,"messages":[{` + members.String()[1:] + `}]`), ""},
		"100k messages":             {wrap(`,"messages":[{}` + strings.Repeat(`,{}`, 100_000) + `]`), ""},
		"100k parts":                {wrap(`,"messages":[{"content":[{}` + strings.Repeat(`,{"text":"","type":"text"}`, 100_000) + `]}]`), ""},
		"duplicates at each level":  {wrap(`,"x":` + nested.String()), ""},
		"white space":               {strings.Repeat(" ", 10<<20), CodeInvalidJSON},
		"no end":                    {`{"model":"` + strings.Repeat("x", 10<<20), CodeInvalidJSON},
		"2 MB of model":             {`{"model":"` + strings.Repeat("x", 2<<20) + `"}`, ""},
	}
})

func TestHostileBodiesCostNoMoreThanTheirSize(t *testing.T) {
	for name, c := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			var written countingWriter
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := New().Encode(Chat, []byte(c.body), nil, &written)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if fault, _ := err.(*Error); c.code == "" && err != nil || c.code != "" && (fault == nil || fault.Code != c.code) {
				t.Errorf("got %v, want code %q", err, c.code)
			}
			// Far above what a busy machine needs, far below what squares of these
			// sizes would take.
			if took > 15*time.Second {
				t.Errorf("took %v", took)
			}
			// Every byte ever allocated is counted here, those of scratch outgrown too.
			if used := after.TotalAlloc - before.TotalAlloc; used > uint64(16*len(c.body))+1<<20 {
				t.Errorf("%d bytes allocated for a body of %d", used, len(c.body))
			}
			if int(written) > 2*len(c.body)+64 {
				t.Errorf("%d bytes of CBR from %d", written, len(c.body))
			}
		})
	}
}

func TestAllocationsDoNotGrowWithTheBody(t *testing.T) {
	for name, body := range bodies() {
		var e Encoder
		ep := endpointOfBench(name)
		run := func() {
			if _, err := e.Encode(ep, body, nil, io.Discard); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(10, run); n > 0 {
			t.Errorf("%s: %v allocations a request", name, n)
		}
	}
}

func TestFirstUseAllocatesAFewTimes(t *testing.T) {
	small, large := chatOf(2_000, english, 1_000), chatOf(400_000, english, 20_000)
	for _, body := range [][]byte{small, large} {
		n := testing.AllocsPerRun(5, func() {
			var e Encoder
			if _, err := e.Encode(Chat, body, nil, io.Discard); err != nil {
				t.Fatal(err)
			}
		})
		if n > 20 {
			t.Errorf("%v allocations for the first body of %d bytes", n, len(body))
		}
	}
}

func TestEncoderDoesNotKeepTheScratchOfAHugeBody(t *testing.T) {
	e := New()
	bodies := hostile()
	for _, name := range []string{"no end", "100k members", "duplicates at each level", "2 MB of model"} {
		c := bodies[name]
		_, _ = e.Encode(Chat, []byte(c.body), nil, io.Discard)
		if cap(e.out) > maxKeptBytes || cap(e.swap) > maxKeptBytes || cap(e.members)+cap(e.runs)+cap(e.moved) > 3*maxKeptMembers || len(e.lastModel) > maxKeptModel {
			t.Fatalf("%s: kept %d, %d bytes, %d members, %d of model", name, cap(e.out), cap(e.swap), cap(e.members), len(e.lastModel))
		}
	}
}

func TestBodyBeyondMaxBodyIsRefused(t *testing.T) {
	e := New()
	if !e.fits(MaxBody) {
		t.Error("a body of MaxBody bytes is refused")
	}
	if e.fits(MaxBody + 1) {
		t.Fatal("a longer one is taken")
	}
	if fault, ok := e.err.(*Error); !ok || fault.Code != CodeTooLarge {
		t.Errorf("a longer one gives %v", e.err)
	}
}
