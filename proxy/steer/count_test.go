package steer

import (
	"errors"
	"testing"
)

func TestMembersAreCountedAsAnyParserMayReadThem(t *testing.T) {
	for body, want := range map[string]int{
		`{"model":"a"}`:                          1,
		` { "x" : {"model":1}, "model" : "a" } `: 1,
		`{"model":"a","Model":"b"}`:              2,
		`{"mod\u0065l":"a","model":"b","x":[]}`:  2,
		`{"MODEL":"a","name":"b"}`:               2,
		`{}`:                                     0,
		`{"models":1,"odel":2}`:                  0,
		``:                                       0,
		`plain`:                                  0,
		`["model"]`:                              0,
	} {
		if n, err := Count([]byte(body), "model", "name"); err != nil || n != want {
			t.Errorf("%s: %d %v, want %d", body, n, err, want)
		}
	}
	for _, body := range []string{"\ufeff{}", `{"model":"a"`, `{"model"}`, `{model:1}`, `{"a":1 "b":2}`} {
		var fault *Error
		if _, err := Count([]byte(body), "model"); !errors.As(err, &fault) {
			t.Errorf("%q: %v", body, err)
		}
	}
}
