package cbr

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvca/state/chain"
)

// The marks of a follow-up must contain the last mark of the request before it,
// at whatever length, and nothing that another conversation has.
func TestAFollowUpMeetsTheMarkOfTheRequestBefore(t *testing.T) {
	for _, ep := range []Endpoint{Chat, Responses, Messages} {
		list := map[Endpoint]string{Chat: "messages", Messages: "messages", Responses: "input"}[ep]
		marks := func(name string, turns int) []chain.Mark {
			var messages []string
			for i := range turns {
				messages = append(messages, fmt.Sprintf(`{"role":%q,"content":"%s turn %d"}`, []string{"user", "assistant"}[i%2], name, i))
			}
			body := fmt.Sprintf(`{"model":"m","%s":[%s],"temperature":%d}`, list, strings.Join(messages, ","), turns)
			var h chain.Hasher
			h.Reset(chain.DeriveKey("test"), 512)
			if _, err := New().Encode(ep, []byte(body), nil, &h); err != nil {
				t.Fatal(err)
			}
			return slices.Clone(h.Marks())
		}
		for turns := 1; turns < 40; turns += 2 {
			before, after := marks("a", turns), marks("a", turns+2)
			last := before[len(before)-1]
			if last.Bytes%512 == 0 {
				continue
			}
			if !slices.Contains(after, last) {
				t.Errorf("%v: the mark %+v after %d messages is not among those after %d: %v", ep, last, turns, turns+2, after)
			}
			if slices.Contains(marks("b", turns+2), last) {
				t.Errorf("%v: another conversation has the mark %+v", ep, last)
			}
			if len(after) > 8 {
				t.Errorf("%d marks kept", len(after))
			}
		}
	}
}
