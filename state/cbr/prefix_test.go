package cbr

import (
	"strings"
	"testing"
)

func TestFirstTextStartsWithin48Bytes(t *testing.T) {
	for ep, body := range map[Endpoint]string{
		Chat:        withMessages(userSays(`"TEXT"`)),
		Completions: `{"model":"m","prompt":"TEXT"}`,
		Responses:   `{"model":"m","input":"TEXT"}`,
		Messages:    withMessages(userSays(`"TEXT"`)),
	} {
		if at := strings.Index(cbrOf(t, ep, body), "TEXT"); at < 0 || at > 48 {
			t.Errorf("%s: the text starts at %d", ep, at)
		}
	}
	const inList = `[{"type":"input_text","text":"TEXT"}]`
	if at := strings.Index(cbrOf(t, Responses, `{"model":"m","input":[{"role":"developer","content":`+inList+`}]}`), "TEXT"); at < 0 || at > 48 {
		t.Errorf("the text of a list starts at %d", at)
	}
}

func TestConfigurationComesFirstInKeyOrder(t *testing.T) {
	cbr := cbrOf(t, Chat, `{"messages":[{"role":"user","content":"LAST"}],"tools":["E"],"b":"B","model":"D","a":"A","documents":["C"]}`)
	at := -1
	for _, part := range []string{"1c", "a\xFEA", "b\xFEB", "documents\xFD\xFEC", "model\xFED", "tools\xFD\xFEE", "\xF7", "LAST"} {
		next := strings.Index(cbr, part)
		if next <= at {
			t.Fatalf("%q is at %d, after %d, in %q", part, next, at, cbr)
		}
		at = next
	}
}

func TestInstructionsAndSystemComeBeforeThePrompt(t *testing.T) {
	for ep, body := range map[Endpoint]string{
		Responses: `{"input":"LATER","model":"m","instructions":"FIRST"}`,
		Messages:  `{"messages":[{"content":"LATER"}],"model":"m","system":"FIRST","tools":[{"name":"SECOND"}]}`,
	} {
		cbr := cbrOf(t, ep, body)
		if strings.Index(cbr, "FIRST") > strings.Index(cbr, "LATER") || strings.Index(cbr, "SECOND") > strings.Index(cbr, "LATER") {
			t.Errorf("%s: %q", ep, cbr)
		}
	}
}

func TestLongerPromptSharesAllButItsEnd(t *testing.T) {
	shared := func(a, b string) int {
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	for _, c := range []struct {
		ep          Endpoint
		short, long string
		most        int // bytes of the short one's CBR that may differ
	}{
		{Completions, `{"model":"m","prompt":"abc"}`, `{"model":"m","prompt":"abcd"}`, 1},
		{Completions, `{"prompt":[1,2,3],"model":"m"}`, `{"prompt":[1,2,3,4],"model":"m"}`, 1},
		{Completions, `{"prompt":["abc"],"model":"m"}`, `{"prompt":["abc","d"],"model":"m"}`, 0},
		{Completions, `{"prompt":"abc","model":"m"}`, `{"prompt":["abc","d"],"model":"m"}`, 0},
		{Responses, `{"model":"m","input":"abc"}`, `{"model":"m","input":"abcd"}`, 3},
		{Responses, `{"model":"m","input":"abc"}`, `{"model":"m","input":[{"role":"user","content":"abc"},{"role":"assistant","content":"d"}]}`, 0},
		{Chat, `{"model":"m"}`, withMessages(`{}`), 0},
		{Chat, withMessages(``), withMessages(`{}`), 0},
		{Chat, withMessages(userSays(`"abc"`)), withMessages(userSays(`"abcd"`)), 3},
	} {
		short, long := cbrOf(t, c.ep, c.short), cbrOf(t, c.ep, c.long)
		if n := shared(short, long); n < len(short)-c.most {
			t.Errorf("%d of %d bytes shared:\n%q\n%q", n, len(short), short, long)
		}
	}
}
