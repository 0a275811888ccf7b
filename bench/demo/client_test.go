package demo

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const (
	roleEvent  = `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	textEvent  = `data: {"choices":[{"delta":{"content":"ab"}}]}` + "\n\n"
	usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":40,"prompt_tokens_details":{"cached_tokens":32}}}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
)

func TestAnswerIsPutTogetherFromItsStream(t *testing.T) {
	r := reader{began: time.Now().Add(-time.Second)}
	if err := r.read(strings.NewReader(roleEvent + textEvent + textEvent + usageEvent + doneEvent)); err != nil {
		t.Fatal(err)
	}
	if a := r.answer; a.text != "abab" || a.prompt != 40 || a.cached != 32 || a.ttft < time.Second {
		t.Errorf("answer is %+v", a)
	}
}

func TestRoleIsNoFirstToken(t *testing.T) {
	r := reader{began: time.Now().Add(-time.Second)}
	if err := r.read(strings.NewReader(roleEvent + usageEvent + doneEvent)); err != nil || r.answer.ttft != 0 {
		t.Errorf("first token after %v, error %v", r.answer.ttft, err)
	}
}

func TestUnfinishedStreamIsAnError(t *testing.T) {
	for stream, want := range map[string]error{
		textEvent + usageEvent: errBroken,
		textEvent + doneEvent:  errUncounted,
		"":                     errBroken,
	} {
		var r reader
		if err := r.read(strings.NewReader(stream)); !errors.Is(err, want) {
			t.Errorf("%q: %v", stream, err)
		}
	}
	var r reader
	err := r.read(strings.NewReader(textEvent + `data: {"error":{"message":"engine died"}}` + "\n\n" + doneEvent))
	if err == nil || !strings.Contains(err.Error(), "engine died") {
		t.Errorf("an error in the stream: %v", err)
	}
}
