package cbr

import (
	"strings"
	"testing"
)

func TestFaultsOfABody(t *testing.T) {
	nest := strings.Repeat
	for _, c := range []struct {
		body, code string
		offset     int64
	}{
		{``, CodeInvalidJSON, 0},
		{`  `, CodeInvalidJSON, 2},
		{"\ufeff" + `{"model":"m"}`, CodeInvalidJSON, 0},
		{`nope`, CodeNotAnObject, 0},
		{`hello`, CodeInvalidJSON, 0},
		{` [{"model":"m"}]`, CodeNotAnObject, 1},
		{`"model"`, CodeNotAnObject, 0},
		{`-1`, CodeNotAnObject, 0},
		{`null`, CodeNotAnObject, 0},
		{`{`, CodeInvalidJSON, 1},
		{`{"model"`, CodeInvalidJSON, 8},
		{`{"model":`, CodeInvalidJSON, 9},
		{`{"model":"m"`, CodeInvalidJSON, 12},
		{`{"model":"m`, CodeInvalidJSON, 11},
		{`{"model":"m",}`, CodeInvalidJSON, 13},
		{`{"model":"m"}x`, CodeInvalidJSON, 13},
		{`{"model":"m"}{}`, CodeInvalidJSON, 13},
		{`{"model":"m"} ` + "\x00", CodeInvalidJSON, 14},
		{`{model:"m"}`, CodeInvalidJSON, 1},
		{`{'model':"m"}`, CodeInvalidJSON, 1},
		{`{"model" "m"}`, CodeInvalidJSON, 9},
		{`{"a":[1,]}`, CodeInvalidJSON, 8},
		{`{"a":[1 2]}`, CodeInvalidJSON, 8},
		{`{"a":[1}`, CodeInvalidJSON, 7},
		{`{"a":{"b":1]}`, CodeInvalidJSON, 11},
		{`{"a":01}`, CodeInvalidJSON, 6},
		{`{"a":-}`, CodeInvalidJSON, 6},
		{`{"a":+1}`, CodeInvalidJSON, 5},
		{`{"a":.5}`, CodeInvalidJSON, 5},
		{`{"a":1.}`, CodeInvalidJSON, 7},
		{`{"a":1e}`, CodeInvalidJSON, 7},
		{`{"a":1e+}`, CodeInvalidJSON, 8},
		{`{"a":[-01]}`, CodeInvalidJSON, 8},
		{`{"a":0x1}`, CodeInvalidJSON, 6},
		{`{"a":NaN}`, CodeInvalidJSON, 5},
		{`{"a":Infinity}`, CodeInvalidJSON, 5},
		{`{"a":tru}`, CodeInvalidJSON, 5},
		{`{"a":nul`, CodeInvalidJSON, 5},
		{`{"a":truex}`, CodeInvalidJSON, 9},
		{`{"a":"` + "\n" + `"}`, CodeInvalidJSON, 6},
		{`{"a":"` + "\x1f" + `"}`, CodeInvalidJSON, 6},
		{`{"a":"0123456789abcdef` + "\x00" + `0123456789abcdef"}`, CodeInvalidJSON, 22},
		{`{"a":"\x"}`, CodeInvalidJSON, 7},
		{`{"a":"\u12"}`, CodeInvalidJSON, 8},
		{`{"a":"\u12g4"}`, CodeInvalidJSON, 8},
		{`{"a":"\`, CodeInvalidJSON, 7},
		{`{"a":"\u`, CodeInvalidJSON, 8},
		{`{"a":"\ud800\u`, CodeInvalidJSON, 14},
		{`{"a":"x` + "\xff" + `"}`, CodeInvalidUTF8, 7},
		{`{"a":"é` + "\xc3" + `"}`, CodeInvalidUTF8, 8},
		{`{"a":"\n` + "\xed\xa0\x80" + `"}`, CodeInvalidUTF8, 8},
		{`{"a":"` + "\xc0\x80" + `"}`, CodeInvalidUTF8, 6},
		{`{"` + "\xf8" + `":1}`, CodeInvalidUTF8, 2},
		{`{"a":` + "\xff" + `}`, CodeInvalidJSON, 5},
		{`{"a":` + nest("[", 255) + nest("]", 255) + `}`, CodeMissingModel, 0},
		{`{"a":` + nest("[", 256) + nest("]", 256) + `}`, CodeTooDeep, 260},
		{`{"a":` + nest(`{"a":`, 256), CodeTooDeep, 1280},
		{`{"messages":[{"content":[` + nest("[", 300), CodeTooDeep, 277},
		{`{}`, CodeMissingModel, 0},
		{`{"messages":7}`, CodeMissingModel, 0},
		{`{"model":null}`, CodeMissingModel, 9},
		{`{"model":""}`, CodeMissingModel, 9},
		{`{"model":1}`, CodeMissingModel, 9},
		{`{"model":["m"]}`, CodeMissingModel, 9},
		{`{"model":"m","model":null}`, CodeMissingModel, 21},
		{`{"x":{"model":"m"}}`, CodeMissingModel, 0},
	} {
		for _, ep := range append([]Endpoint{Other}, everyEndpoint...) {
			fault := faultOf(t, ep, c.body)
			if fault.Code != c.code || fault.Offset != c.offset {
				t.Errorf("%s %.60s: %s at %d, want %s at %d: %s", ep, c.body, fault.Code, fault.Offset, c.code, c.offset, fault)
			}
			if wantParam := map[bool]string{true: "model"}[c.code == CodeMissingModel]; fault.Param != wantParam {
				t.Errorf("%s: param is %q", c.body, fault.Param)
			}
		}
	}
}

func TestFaultSaysWhatWasExpectedWhatCameAndWhatToDo(t *testing.T) {
	for body, parts := range map[string][]string{
		`{"model":"m",}`:         {"byte 13", "key", "'}'", "send"},
		`{"model":"m"`:           {"byte 12", "comma", "the end of the body"},
		`{"a":"` + "\n" + `"}`:   {"byte 6", "control characters", "0x0A"},
		`[]`:                     {"object", "array", "send"},
		`{}`:                     {"model", "missing", "/v1/models"},
		`{"model":3}`:            {"model", "not a string"},
		`{"model":""}`:           {"model", "empty"},
		`{"a":"` + "\xff" + `"}`: {"UTF-8", "byte 6", "0xFF"},
	} {
		message := faultOf(t, Chat, body).Error()
		for _, part := range parts {
			if !strings.Contains(message, part) {
				t.Errorf("%q: no %q in %q", body, part, message)
			}
		}
	}
}

// What a prompt holds is the engine's to judge: it answers with its own words.
func TestPromptOfAnyKindPasses(t *testing.T) {
	for _, prompt := range []string{`[]`, `null`, `"x"`, `7`, `{}`, `true`, `[1]`, `["x"]`, `[null,[],{}]`, `[{"role":7,"content":7}]`, `[{"content":[1,"x",null,[]]}]`} {
		for _, ep := range everyEndpoint {
			name := endpoints[ep].prompt
			cbrOf(t, ep, `{"model":"m","`+name+`":`+prompt+`}`)
		}
	}
	for _, ep := range everyEndpoint {
		cbrOf(t, ep, `{"model":"m"}`)
		cbrOf(t, ep, `{"model":"m","system":7}`)
	}
}

func TestPromptsOfOtherKindsDiffer(t *testing.T) {
	all := []string{`[]`, `null`, `"x"`, `"y"`, `7`, `{}`, `true`, `[1]`, `[2]`, `["x"]`, `[null]`, `[[]]`, `[{}]`}
	for i, a := range all {
		for _, b := range all[i+1:] {
			wantDifferent(t, Chat, `{"model":"m","messages":`+a+`}`, `{"model":"m","messages":`+b+`}`)
			wantDifferent(t, Responses, `{"model":"m","input":`+a+`}`, `{"model":"m","input":`+b+`}`)
		}
	}
}
