package cbr

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhiteSpaceMeansNothing(t *testing.T) {
	wantSame(t, Chat, chatWith(`,"tools":[{"a":[1,{}]}]`), strings.NewReplacer(
		"{", " {\n", "}", "\t} ", "[", "\r\n[ ", "]", " ]\n", ",", " , ", ":", "\n:\t").Replace(chatWith(`,"tools":[{"a":[1,{}]}]`)))
}

func TestStringEscapesMeanNothingAtAnyDepth(t *testing.T) {
	for plain, escaped := range map[string]string{
		`a`: `\u0061`, `/`: `\/`, `é`: `\u00e9`, `€`: `\u20AC`, `😀`: `\ud83d\uDE00`, `\n`: `\u000a`, `\"`: `\u0022`, `\\`: `\u005C`,
		`\b\f\r\t`: `\u0008\u000c\u000d\u0009`,
	} {
		wantSame(t, Chat, withMessages(userSays(`"`+plain+`"`)), withMessages(userSays(`"`+escaped+`"`)))
		wantSame(t, Chat, chatWith(`,"tools":[{"`+plain+`":["`+plain+`"]}]`), chatWith(`,"tools":[{"`+escaped+`":["`+escaped+`"]}]`))
		wantSame(t, Chat, chatWith(`,"x`+plain+`":1`), chatWith(`,"x`+escaped+`":1`))
	}
	wantSame(t, Chat, `{"model":"m","messages":[]}`, `{"\u006dodel":"\u006D","mes\u0073ages":[]}`)
	wantSame(t, Chat, withMessages(userSays(`"a"`)), withMessages(`{"r\u006fle":"us\u0065r","cont\u0065nt":"a"}`))
	wantSame(t, Chat, chatWith(""), chatWith(`,"s\u0065ed":1`))
}

func TestTextOfEveryLengthIsCopiedWhole(t *testing.T) {
	for n := range 200 {
		text := strings.Repeat("abcdefg", 30)[:n]
		for _, tail := range []string{"", `\n`, "é", `\u00e9é\\`} {
			got := cbrOf(t, Chat, withMessages(userSays(`"`+text+tail+`"`)))
			tail = strings.NewReplacer(`\n`, "\n", `\u00e9`, "é", `\\`, `\`).Replace(tail)
			if want := "\xFD\xFE" + text + tail + "\xFF\xFF\xFF"; !strings.HasSuffix(got, want) {
				t.Fatalf("%d bytes and %q: got %q", n, tail, got)
			}
		}
	}
}

func TestNumberSpellingMeansNothingInFixedModels(t *testing.T) {
	seen := map[string]bool{}
	for _, class := range [][]string{
		{"1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1.000", "0.0001e4", "1e-0"},
		{"0", "-0", "0.0", "0e5", "-0.000e-99999999999999999999999", "0E0"},
		{"100", "1e2", "1.0e+2", "0.01e4", "1000e-1", "1e0000000000000000000000000002"},
		{"-2.5", "-25e-1", "-0.25e1", "-2.500"},
		{"9007199254740993", "9007199254740993.0", "9.007199254740993e15"},
		{"9007199254740992"},
		{"0.1"},
		{"0.1000000000000000055511151231257827"},
		{"1e999999999", "10e999999998", "0.1e1000000000"},
		{"1e1000000000"},
		{"-1e999999999"},
		{"1e-999999999"},
		{"1e99999999999999999999999"},
		{"1e99999999999999999999998"},
		{"1e-99999999999999999999999"},
		{"1" + strings.Repeat("0", 400), "1e400"},
	} {
		first := cbrOf(t, Chat, chatWith(`,"x":`+class[0]))
		for _, spelling := range class {
			wantSame(t, Chat, chatWith(`,"x":`+class[0]), chatWith(`,"x":`+spelling))
			wantSame(t, Chat, withMessages(`{"x":`+class[0]+`}`), withMessages(`{"x":`+spelling+`}`))
			wantSame(t, Chat, withMessages(userSays(`[{"x":`+class[0]+`}]`)), withMessages(userSays(`[{"x":`+spelling+`}]`)))
		}
		if seen[first] {
			t.Errorf("%s has the CBR of another value", class[0])
		}
		seen[first] = true
	}
}

func TestBelowFixedModelsAllCountsAsWritten(t *testing.T) {
	for _, pair := range [][2]string{
		{`1`, `1.0`},
		{`1`, `1e0`},
		{`0`, `-0`},
		{`1e2`, `1E2`},
		{`100`, `1e2`},
		{`{"a":null}`, `{}`},
		{`[null]`, `[]`},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`},
		{`"x"`, `[{"type":"text","text":"x"}]`},
	} {
		for _, at := range []string{
			`,"tools":[{"function":{"parameters":%s}}]`, `,"documents":[%s]`, `,"chat_template_kwargs":{"x":%s}`, `,"unheard_of":{"y":[%s]}`,
			`,"response_format":{"json_schema":%s}`,
		} {
			wantDifferent(t, Chat, chatWith(fmt.Sprintf(at, pair[0])), chatWith(fmt.Sprintf(at, pair[1])))
		}
		for _, at := range []string{`{"role":"assistant","tool_calls":[%s]}`, `{"content":[{"type":"image_url","image_url":{"x":%s}}]}`} {
			wantDifferent(t, Chat, withMessages(fmt.Sprintf(at, pair[0])), withMessages(fmt.Sprintf(at, pair[1])))
		}
	}
}

func TestNullIsAbsentInFixedModels(t *testing.T) {
	wantSame(t, Chat, chatWith(""), chatWith(`,"tools":null,"x":null`))
	wantSame(t, Chat, `{"model":"m"}`, `{"model":"m","messages":null}`)
	wantSame(t, Completions, `{"model":"m"}`, `{"prompt":null,"model":"m"}`)
	wantSame(t, Messages, `{"model":"m"}`, `{"system":null,"model":"m"}`)
	wantSame(t, Chat, withMessages(`{"role":"assistant","tool_calls":[]}`), withMessages(`{"name":null,"role":"assistant","content":null,"tool_calls":[]}`))
	wantSame(t, Chat, withMessages(`{}`), withMessages(`{"role":null,"content":null}`))
	wantSame(t, Chat, withMessages(userSays(`[{"type":"text","text":"a"}]`)), withMessages(userSays(`[{"uuid":null,"type":"text","text":"a","x":null}]`)))
	wantDifferent(t, Chat, withMessages(`null`), withMessages(``))
	wantDifferent(t, Chat, withMessages(userSays(`[]`)), withMessages(userSays(`null`)))
	wantDifferent(t, Chat, withMessages(userSays(`""`)), withMessages(userSays(`null`)))
	wantDifferent(t, Chat, withMessages(userSays(`""`)), withMessages(userSays(`[]`)))
}

func TestMemberOrderMeansNothingInFixedModels(t *testing.T) {
	wantSame(t, Chat, `{"a":1,"model":"m","b":2,"messages":[]}`, `{"messages":[],"b":2,"model":"m","a":1}`)
	wantSame(t, Chat, withMessages(`{"role":"tool","content":"x","tool_call_id":"1","name":"n"}`), withMessages(`{"name":"n","tool_call_id":"1","content":"x","role":"tool"}`))
	wantSame(t, Chat, withMessages(userSays(`[{"type":"image_url","image_url":{"url":"u"},"uuid":"1"}]`)), withMessages(userSays(`[{"uuid":"1","image_url":{"url":"u"},"type":"image_url"}]`)))
	wantSame(t, Responses, `{"model":"m","input":[{"type":"function_call","name":"f","call_id":"1"}]}`, `{"input":[{"call_id":"1","name":"f","type":"function_call"}],"model":"m"}`)
}

func TestStringContentIsOneTextPart(t *testing.T) {
	list := func(kind string) string { return `[{"type":"` + kind + `","text":"hi \"you\""}]` }
	const text = `"hi \"you\""`
	for _, ep := range []Endpoint{Chat, Messages} {
		for _, role := range []string{"user", "system", "assistant", "tool"} {
			with := func(content string) string { return withMessages(`{"role":"` + role + `","content":` + content + `}`) }
			wantSame(t, ep, with(text), with(list("text")))
			wantSame(t, ep, with(text), with(`[{"text":"hi \u0022you\"","type":"text","x":null}]`))
			wantDifferent(t, ep, with(text), with(list("input_text")))
			wantDifferent(t, ep, with(text), with(`[{"type":"text","text":"hi \"you\"","x":1}]`))
			wantDifferent(t, ep, with(`"ab"`), with(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`))
			wantDifferent(t, ep, with(`"1"`), with(`[{"type":"text","text":1}]`))
		}
	}
	wantSame(t, Messages, `{"model":"m","system":`+text+`}`, `{"model":"m","system":`+list("text")+`}`)
	wantDifferent(t, Chat, `{"model":"m","system":`+text+`}`, `{"model":"m","system":`+list("text")+`}`)
}

func TestTextOfResponsesIsOneByAnyOfItsTypes(t *testing.T) {
	input := func(role, content string) string {
		return `{"model":"m","input":[{"role":"` + role + `","content":` + content + `}]}`
	}
	for _, role := range []string{"user", "system", "developer", "assistant"} {
		for _, kind := range []string{"input_text", "output_text", "text"} {
			wantSame(t, Responses, input(role, `"hi"`), input(role, `[{"text":"hi","type":"`+kind+`"}]`))
			wantDifferent(t, Responses, input(role, `"hi"`), input(role, `[{"text":"hi","type":"`+kind+`","annotations":[]}]`))
		}
		wantDifferent(t, Responses, input(role, `"hi"`), input(role, `[{"type":"refusal","text":"hi"}]`))
	}
	wantDifferent(t, Responses, input("user", `"hi"`), input("assistant", `"hi"`))
}

func TestStringInputIsOneUserItem(t *testing.T) {
	const want = `{"model":"m","input":"hi"}`
	wantSame(t, Responses, want, `{"model":"m","input":[{"role":"user","content":"hi"}]}`)
	wantSame(t, Responses, want, `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}`)
	wantDifferent(t, Responses, want, `{"model":"m","input":[{"role":"system","content":"hi"}]}`)
	wantDifferent(t, Responses, want, `{"model":"m","input":[]}`)
}

func TestListOfOnePromptIsThatPrompt(t *testing.T) {
	with := func(prompt string) string { return `{"model":"m","prompt":` + prompt + `}` }
	wantSame(t, Completions, with(`"a"`), with(`["a"]`))
	wantSame(t, Completions, with(`[1,2]`), with(`[[1,2]]`))
	wantSame(t, Completions, with(`[1,2]`), with("[ \n1.0, 20e-1]"))
	all := []string{`""`, `"a"`, `["a","b"]`, `["ab"]`, `["a",""]`, `[]`, `[[]]`, `[1,2]`, `[12]`, `[[1],[2]]`, `[[1,2],[]]`, `"1"`, `{"a":1}`, `1`, `[null]`, `["a",1]`, `true`}
	for i, a := range all {
		for _, b := range all[i+1:] {
			wantDifferent(t, Completions, with(a), with(b))
		}
	}
}

func TestLastOfDuplicateMembersCounts(t *testing.T) {
	wantSame(t, Chat, `{"model":"b","messages":[]}`, `{"model":"a","messages":[{"role":"user"}],"model":"b","messages":[]}`)
	wantSame(t, Chat, chatWith(`,"x":2`), chatWith(`,"x":1,"\u0078":2`))
	wantSame(t, Chat, chatWith(``), chatWith(`,"x":1,"x":null`))
	wantSame(t, Chat, chatWith(`,"x":1`), chatWith(`,"x":null,"x":1`))
	wantSame(t, Chat, withMessages(userSays(`"b"`)), withMessages(`{"role":"system","content":"a","content":"b","role":"user"}`))
	wantSame(t, Chat, withMessages(userSays(`"b"`)), withMessages(userSays(`[{"type":"x","type":"text","text":1,"text":"b"}]`)))
	wantSame(t, Chat, withMessages(`{"role":"user"}`), withMessages(`{"role":"user","content":"a","content":null}`))
	// As in a Python dictionary, a key keeps the place where it stood first.
	wantSame(t, Chat, chatWith(`,"tools":[{"a":3,"b":2}]`), chatWith(`,"tools":[{"a":1,"b":2,"a":3}]`))
	wantDifferent(t, Chat, chatWith(`,"tools":[{"b":2,"a":3}]`), chatWith(`,"tools":[{"a":1,"b":2,"a":3}]`))
	wantSame(t, Chat, chatWith(`,"tools":{"a":{"x":2},"b":null}`), chatWith(`,"tools":{"a":{"x":1},"b":{"a":1},"a":{"x":1,"x":2},"b":null}`))
}

func TestNullCountsInLargeObjectsAsInSmallOnes(t *testing.T) {
	for _, size := range []int{1, 2, fewMembers, fewMembers + 1, 3 * fewMembers} {
		var some, fewer strings.Builder
		for i := range size {
			fmt.Fprintf(&some, `,"k%d":1`, i)
			if i > 0 {
				fmt.Fprintf(&fewer, `,"k%d":1`, i)
			}
		}
		wantSame(t, Chat, chatWith(some.String()), chatWith(some.String()+`,"z":null`))
		wantSame(t, Chat, chatWith(fewer.String()), chatWith(some.String()+`,"k0":null`))
		wantSame(t, Chat, withMessages(`{"role":"user"`+fewer.String()+`}`), withMessages(`{"role":"user"`+some.String()+`,"k0":null}`))
		wantSame(t, Chat, chatWith(some.String()), chatWith(some.String()+`,"k0":null,"k0":1`))
	}
}

func TestLoneSurrogatesAreKeptApart(t *testing.T) {
	all := []string{`\ud800`, `\udc00`, `\udfff`, `\udbff`, `\udc00\ud800`, `\ud800\ud800`, `\ud800x`, `\ud800\n`, `�`, `\ud800\udc00`, `\ud800\ue000`}
	for i, a := range all {
		for _, b := range all[i+1:] {
			wantDifferent(t, Chat, withMessages(userSays(`"`+a+`"`)), withMessages(userSays(`"`+b+`"`)))
			wantDifferent(t, Chat, chatWith(`,"x`+a+`":1`), chatWith(`,"x`+b+`":1`))
		}
	}
	wantSame(t, Chat, withMessages(userSays(`"\uD800"`)), withMessages(userSays(`"\ud800"`)))
}

func TestCacheControlOfAPartMeansNothing(t *testing.T) {
	const marked = `[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`
	wantSame(t, Messages, withMessages(userSays(`"a"`)), withMessages(userSays(marked)))
	wantSame(t, Messages, `{"model":"m","system":"a"}`, `{"model":"m","system":`+marked+`}`)
	wantSame(t, Chat, withMessages(userSays(`"a"`)), withMessages(userSays(`[{"prompt_cache_breakpoint":1,"type":"text","text":"a"}]`)))
	wantSame(t, Chat, withMessages(userSays(`"a"`)), withMessages(userSays(`[{"cache_control":1,"type":"text","cache_control":2,"text":"a"}]`)))
}

func TestContentDoesMatter(t *testing.T) {
	const base = `{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"what is it"},{"type":"image_url","image_url":{"url":"a"}}]}`
	for _, other := range []string{
		strings.Replace(base, "what", "What", 1),
		strings.Replace(base, `"url":"a"`, `"url":"b"`, 1),
		strings.Replace(base, "system", "developer", 1),
		`{"role":"user","content":[{"type":"text","text":"what is it"},{"type":"image_url","image_url":{"url":"a"}}]},{"role":"system","content":"be brief"}`,
		`{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"a"}},{"type":"text","text":"what is it"}]}`,
	} {
		wantDifferent(t, Chat, withMessages(base), withMessages(other))
	}
	for _, pair := range [][2]string{
		{`"cache_salt":"a"`, `"cache_salt":"b"`},
		{`"tools":[{"name":"a"}]`, `"tools":[{"name":"b"}]`},
		{`"tools":[{"name":"a"},{"name":"b"}]`, `"tools":[{"name":"b"},{"name":"a"}]`},
		{`"ab":"c"`, `"a":"bc"`},
		{`"a":"1"`, `"a":1`},
		{`"a":""`, `"a":[]`},
		{`"a":[]`, `"a":{}`},
		{`"a":[[],[]]`, `"a":[[[]]]`},
		{`"a":"b","c":"d"`, `"a":"bc","d":""`},
		{`"a":[1,2]`, `"a":[12]`},
		{`"":1`, `"a":1`},
		{`"a":true`, `"a":"true"`},
	} {
		wantDifferent(t, Chat, chatWith(","+pair[0]), chatWith(","+pair[1]))
	}
	for i, a := range everyEndpoint {
		for _, b := range everyEndpoint[i+1:] {
			if cbrOf(t, a, chatWith("")) == cbrOf(t, b, chatWith("")) {
				t.Errorf("%s and %s share a CBR", a, b)
			}
		}
	}
}
