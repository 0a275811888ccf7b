package steer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMembersAreEditedAndNothingElse(t *testing.T) {
	strip := []string{"nvext", "bootstrap_*"}
	for _, c := range []struct{ name, salt, body, want string }{
		{"nothing to do", "", `{"model":"m", "x":{"nvext":1}}`, `{"model":"m", "x":{"nvext":1}}`},
		{"the first", "", `{"nvext":1,"model":"m"}`, `{"model":"m"}`},
		{"one between", "", `{"a":1, "nvext":{"b":[1,"}"]} , "c":2}`, `{"a":1, "c":2}`},
		{"the last", "", `{"a":1 , "nvext":2 }`, `{"a":1 }`},
		{"all", "", ` { "nvext":1 , "bootstrap_room":2 } `, ` {  } `},
		{"the last ones", "", `{"a":1,"nvext":1,"nvext":2}`, `{"a":1}`},
		{"twice, apart", "", `{"nvext":1,"a":1,"nvext":2,"b":[] ,"bootstrap_host":"h"}`, `{"a":1,"b":[]}`},
		{"a prefix", "", `{"bootstrap_":1,"bootstrap":2}`, `{"bootstrap":2}`},
		{"escaped name", "", `{"nv\u0065xt":1,"a":1}`, `{"a":1}`},
		{"escaped prefix", "", `{"\u0062ootstrap_x":1,"a":1}`, `{"a":1}`},
		{"escaped name that is another", "", `{"nv\u0066xt":1}`, `{"nv\u0066xt":1}`},
		{"another case", "", `{"NvExt":1,"BOOTSTRAP_Port":2,"a":1}`, `{"a":1}`},
		{"another letter of the same case", "", `{"bootſtrap_port":2,"a":1}`, `{"a":1}`},
		{"name in a string", "", `{"a":"\",\"nvext\":1,\"","b":"\\","nvext":2}`, `{"a":"\",\"nvext\":1,\"","b":"\\"}`},
		{"salt into an empty object", "s", `{ }`, `{ "cache_salt":"s"}`},
		{"salt behind the rest", "s", `{"a":1 }`, `{"a":1,"cache_salt":"s" }`},
		{"salt in place of the client's", "s", `{"cache_salt":"x","a":1,"cache\u005fsalt":"y"}`, `{"a":1,"cache_salt":"s"}`},
		{"salt in place of all", "s", `{"Cache_Salt":"x","nvext":1}`, `{"cache_salt":"s"}`},
		{"salt that needs escapes", "\"\\", `{}`, `{"cache_salt":"\"\\"}`},
		{"no salt, the client's stays", "", `{"cache_salt":"x"}`, `{"cache_salt":"x"}`},
		{"an array", "s", `[{"nvext":1}]`, `[{"nvext":1}]`},
		{"no JSON", "s", `--boundary`, `--boundary`},
		{"white space", "s", " \n", " \n"},
		{"nothing", "s", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Rules{Strip: strip, Salt: c.salt}
			body := []byte(c.body)
			out, refused, err := r.Apply(body)
			if string(out) != c.want || refused != "" || err != nil {
				t.Errorf("%s, %q, %v\nwant %s", out, refused, err, c.want)
			}
			if string(body) != c.body {
				t.Errorf("the client's own body is now %s", body)
			}
		})
	}
}

func TestAMemberIsRefusedByItsRule(t *testing.T) {
	r := &Rules{Strip: []string{"nvext", "input_ids"}, Refuse: []string{"input_ids", "bootstrap_*"}}
	for body, want := range map[string]string{
		`{"nvext":1,"input_ids":[1]}`:  "input_ids",
		`{"a":1,"boot\u0073trap_x":1}`: "bootstrap_*",
		`{"a":{"input_ids":[1]}}`:      "",
		`{"a":"input_ids"}`:            "",
	} {
		if _, refused, err := r.Apply([]byte(body)); refused != want || err != nil {
			t.Errorf("%s: refused for %q, %v; want %q", body, refused, err, want)
		}
	}
}

// What two parsers might read in two ways carries nothing past the rules.
func TestWhatCanBeReadInTwoWaysIsAnError(t *testing.T) {
	utf16 := func(s string, at int) string { // at: where the letter stands in its pair
		var b strings.Builder
		for i := range len(s) {
			pair := [2]byte{}
			pair[at] = s[i]
			b.Write(pair[:])
		}
		return b.String()
	}
	const body = `{"nvext":1}`
	for name, body := range map[string]string{
		"byte order mark":                "\ufeff" + body,
		"white space, byte order mark":   " \ufeff" + body,
		"UTF-16":                         utf16(body, 0),
		"UTF-16, big end first":          utf16(body, 1),
		"UTF-16, white space":            utf16(" \n"+body, 1),
		"UTF-16, mark":                   "\xff\xfe" + utf16(body, 0),
		"UTF-16, other mark":             "\xfe\xff" + utf16(body, 1),
		"UTF-32":                         utf16(utf16(body, 0), 0),
		"text after it":                  body + "x",
		"another object after it":        body + body,
		"a zero after it":                body + "\x00",
		"a comment":                      `{"a":1/*"*/,"nvext":2/*"*/}`,
		"a comment in an array":          `{"a":[1/*"]*/],"nvext":2}`,
		"a comment line":                 "{#\"\n\"nvext\":1}",
		"single quotes":                  `{'nvext':1}`,
		"a bare name":                    `{nvext:1}`,
		"brackets that don't match":      `{"a":[}],"nvext":1}`,
		"brackets that don't match, 2":   `{"a":{"b":1],"nvext":1}`,
		"no comma":                       `{"a":1 "nvext":1}`,
		"two commas":                     `{"a":1,,"nvext":1}`,
		"comma at the end":               `{"a":1,}`,
		"comma alone":                    `{,}`,
		"no colon":                       `{"a" 1}`,
		"no value":                       `{"a":}`,
		"no end":                         `{"a":1`,
		"no end of a string":             `{"a":"\"}`,
		"no end of an array":             `{"a":[1`,
		"only a brace":                   `{`,
		"NaN":                            `{"a":NaN}`,
		"name with a faulty escape":      `{"nv\x65xt":1}`,
		"name with a cut escape":         `{"nvext\u00":1}`,
		"white space of other alphabets": "{\u00a0\"nvext\":1}",
	} {
		out, refused, err := (&Rules{Strip: []string{"nvext"}}).Apply([]byte(body))
		var fault *Error
		if !errors.As(err, &fault) || fault.Code != CodeInvalidJSON || out != nil || refused != "" {
			t.Errorf("%s: %q, %q, %v; want an error", name, out, refused, err)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	nest := func(levels int) []byte {
		return []byte(`{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`)
	}
	r := &Rules{Strip: []string{"nvext"}}
	if _, _, err := r.Apply(nest(MaxDepth)); err != nil {
		t.Error(err)
	}
	var fault *Error
	if _, _, err := r.Apply(nest(MaxDepth + 1)); !errors.As(err, &fault) || fault.Code != CodeTooDeep {
		t.Error(err)
	}
	if _, _, err := r.Apply([]byte(`{"a":` + strings.Repeat("[", 1<<20))); !errors.As(err, &fault) || fault.Code != CodeTooDeep {
		t.Error(err)
	}
}

func TestWithoutRulesABodyIsNotLookedAt(t *testing.T) {
	for _, r := range []*Rules{nil, {}} {
		if out, _, err := r.Apply([]byte(`{"a`)); string(out) != `{"a` || err != nil {
			t.Errorf("%s, %v", out, err)
		}
	}
}

func TestHeadersThatSteerAreTakenAway(t *testing.T) {
	h := http.Header{}
	for _, name := range []string{
		"X-Data-Parallel-Rank", "x-data-parallel-host-port", "x-prefiller-host-port", "x-prefill-instance-id", "x-encoder-hosts-ports",
		"x-kv-cache-source-host-port", "x-llm-d-anything", "x-worker-instance-id", "x-dp-rank", "x-dynamo-routing-mode",
	} {
		h.Set(name, "1")
	}
	h.Set("X-Request-Id", "2")
	h.Set("Authorization", "3")
	if StripHeaders(h); len(h) != 2 {
		t.Errorf("left: %v", h)
	}
}

func steered(name string, fields []string) bool {
	for _, f := range fields {
		if matchesText(f, name) {
			return true
		}
	}
	return false
}

// topLevel reads an object with the standard library, nil if it is none.
func topLevel(body []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var object map[string]any
	if !json.Valid(body) || d.Decode(&object) != nil {
		return nil
	}
	return object
}

// check holds an edit against what the standard library makes of the same body.
func check(t interface {
	Errorf(format string, args ...any)
}, body []byte,
) {
	fields := DefaultFields()
	before := bytes.Clone(body)
	r := &Rules{Strip: fields, Salt: "tenant"}
	out, refused, err := r.Apply(body)
	if !bytes.Equal(body, before) || refused != "" {
		t.Errorf("%q became %q, refused %q", before, body, refused)
	}
	object := topLevel(body)
	var fault *Error
	switch {
	case err != nil:
		if object != nil && !(errors.As(err, &fault) && fault.Code == CodeTooDeep) {
			t.Errorf("%q: %v", body, err)
		}
		return
	case object == nil: // whatever it is, it must carry nothing to who reads it as an object
		for name := range topLevel(out) {
			if steered(name, fields) {
				t.Errorf("%q became %q", body, out)
			}
		}
		return
	}
	for name := range object {
		if steered(name, fields) || strings.EqualFold(name, saltField) {
			delete(object, name)
		}
	}
	object[saltField] = "tenant"
	if got := topLevel(out); !reflect.DeepEqual(got, object) {
		t.Errorf("%q became %q: %v, want %v", body, out, got, object)
	}
	if n := strings.Count(string(out), `"cache_salt":"tenant"`); n == 0 {
		t.Errorf("%q has no salt: %q", body, out)
	}
	if again, _, err := r.Apply(out); err != nil || !reflect.DeepEqual(topLevel(again), object) {
		t.Errorf("a second time %q became %q, %v", out, again, err)
	}
}

func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi \"you\" \\"}],"kv_transfer_params":{"a":[1,{}]},"cache_salt":null}`,
		`{ "kv\u005ftransfer_params" : 1 , "x":[true,false,null,-1.5e+3] , "nvext":{}}`, `{"a":"\u00e9","input_ids":[1,2]}`,
		"\ufeff{}", `[]`, `{"a":1}x`, `{"":""}`, "{\x00}", `{"a":[}`, `{"lora":1,"LORA":2,"lora":3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { check(t, body) })
}

func TestEditsAreThoseOfAnObject(t *testing.T) {
	names := append(DefaultFields(), "model", "messages", "cache_salt", "Cache_Salt", "BOOTSTRAP_X", "bootstrap_room", "", "é", `q"\`)
	values := []string{`1`, `-1.5e3`, `"text \" \\ \u00e9 }],"`, `[]`, `{}`, `[{"nvext":[1,"]"]}]`, `null`, `true`, `{"cache_salt":"x","a":{"b":1}}`}
	spaces := []string{"", "", " ", "\n\t "}
	rapid.Check(t, func(t *rapid.T) {
		gap := func() string { return rapid.SampledFrom(spaces).Draw(t, "gap") }
		var b strings.Builder
		b.WriteString(gap() + "{" + gap())
		for i := range rapid.IntRange(0, 8).Draw(t, "members") {
			if i > 0 {
				b.WriteString("," + gap())
			}
			name, _ := json.Marshal(rapid.SampledFrom(names).Draw(t, "name"))
			if rapid.Bool().Draw(t, "escaped") && len(name) > 2 && name[1] < 0x80 && name[1] != '\\' {
				name = fmt.Appendf(nil, `"\u%04X%s`, name[1], name[2:])
			}
			b.Write(name)
			b.WriteString(gap() + ":" + gap() + rapid.SampledFrom(values).Draw(t, "value") + gap())
		}
		b.WriteString("}" + gap())
		check(t, []byte(b.String()))
	})
}
