package cbr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// speller writes JSON of one meaning in the many ways clients have: white space,
// escapes, and, where free, number spelling, member order, nulls and duplicates.
type speller struct {
	t     *rapid.T
	plain bool // no freedom: the same JSON each time
}

func (s speller) pick(n int) int {
	if s.plain {
		return 0
	}
	return rapid.IntRange(0, n-1).Draw(s.t, "choice")
}

func (s speller) space() string {
	return []string{"", "", " ", "\n\t", "\r\n  "}[s.pick(5)]
}

func (s speller) text(text string) string {
	var sb strings.Builder
	sb.WriteByte('"')
	for _, r := range text {
		switch {
		case r >= 0x10000 && s.pick(2) == 1:
			fmt.Fprintf(&sb, `\u%04x\u%04X`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		case r < 0x10000 && s.pick(4) == 1, r < ' ', r == '"', r == '\\':
			fmt.Fprintf(&sb, `\u%04x`, r)
		default:
			sb.WriteRune(r)
		}
	}
	return sb.String() + `"`
}

// number spells a whole number.
func (s speller) number(n int64) string {
	if n == 0 {
		return []string{"0", "-0", "0.0", "0e7"}[s.pick(4)]
	}
	return []string{fmt.Sprint(n), fmt.Sprintf("%d.0", n), fmt.Sprintf("%de0", n), fmt.Sprintf("%d0E-1", n), fmt.Sprintf("%d.000e+00", n)}[s.pick(5)]
}

// pair is a member of a value to be spelled, with its value already spelled.
type pair struct{ key, value string }

func (s speller) object(pairs []pair) string {
	var sb strings.Builder
	sb.WriteString("{" + s.space())
	for i, p := range pairs {
		if i > 0 {
			sb.WriteString("," + s.space())
		}
		sb.WriteString(s.text(p.key) + s.space() + ":" + s.space() + p.value + s.space())
	}
	return sb.String() + "}"
}

// fixed spells an object whose member order is free.
func (s speller) fixed(pairs []pair) string {
	if s.plain {
		return s.object(pairs)
	}
	pairs = rapid.Permutation(pairs).Draw(s.t, "order")
	for range s.pick(3) {
		pairs = append(pairs[:len(pairs):len(pairs)], pair{[]string{"zz", "absent", "name2"}[s.pick(3)], "null"})
	}
	if len(pairs) > 0 && s.pick(3) == 0 { // overridden by the one that follows
		pairs = append([]pair{{pairs[len(pairs)/2].key, `{"old":[1]}`}}, pairs...)
	}
	return s.object(pairs)
}

func (s speller) list(items []string) string {
	return "[" + s.space() + strings.Join(items, s.space()+","+s.space()) + s.space() + "]"
}

// tree is any JSON, below the fixed models.
type tree struct {
	kind  int // string, number, literal, array, object
	text  string
	items []tree
}

func drawTree(t *rapid.T, depth int) tree {
	kinds := 4
	if depth == 0 {
		kinds = 2
	}
	n := tree{kind: rapid.IntRange(0, kinds).Draw(t, "kind")}
	switch n.kind {
	case 0:
		n.text = drawText(t)
	case 1:
		n.text = rapid.SampledFrom([]string{"0", "1", "1.0", "-0", "1e3", "1E3", "12345678901234567890", "0.10"}).Draw(t, "number")
	case 2:
		n.text = rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "literal")
	default:
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			n.items = append(n.items, drawTree(t, depth-1))
		}
	}
	return n
}

func drawText(t *rapid.T) string {
	return rapid.StringOfN(rapid.RuneFrom([]rune("aab\"\\\n/é€😀 \x00\x1f\u2028")), 0, 40, -1).Draw(t, "text")
}

func (n tree) spell(s speller) string {
	switch n.kind {
	case 0:
		return s.text(n.text)
	case 1, 2:
		return n.text
	}
	var items []string
	var pairs []pair
	for i, item := range n.items {
		items = append(items, item.spell(s))
		pairs = append(pairs, pair{fmt.Sprintf("k%d/", 9-i), items[i]})
	}
	if n.kind == 3 {
		return s.list(items)
	}
	return s.object(pairs)
}

// chat is the meaning of a chat.
type chat struct {
	model    string
	extra    map[string]tree
	number   int64
	messages []turn
}

type turn struct {
	role  string
	parts []string // texts
	calls []tree
	index int64
}

func drawTurn(t *rapid.T) turn {
	m := turn{role: rapid.SampledFrom([]string{"user", "assistant", "system", "tool"}).Draw(t, "role")}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		m.parts = append(m.parts, drawText(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "calls") {
		m.calls = append(m.calls, drawTree(t, 3))
	}
	m.index = rapid.Int64Range(-1000, 1000).Draw(t, "index")
	return m
}

func drawChat(t *rapid.T) chat {
	c := chat{model: "m" + drawText(t), extra: map[string]tree{}, number: rapid.Int64().Draw(t, "number")}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"tools", "documents", "x", "chat_template_kwargs"}), 0, 3).Draw(t, "extra") {
		if n := drawTree(t, 3); n.text != "null" && n.kind != 1 {
			c.extra[name] = n
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "messages") {
		c.messages = append(c.messages, drawTurn(t))
	}
	return c
}

func (m turn) spell(s speller) string {
	var parts []string
	for _, text := range m.parts {
		parts = append(parts, s.fixed([]pair{{"type", s.text("text")}, {"text", s.text(text)}}))
	}
	content := s.list(parts)
	if len(m.parts) == 1 && s.pick(2) == 1 {
		content = s.text(m.parts[0])
	}
	pairs := []pair{{"role", s.text(m.role)}, {"content", content}, {"index", s.number(m.index)}}
	if m.calls != nil {
		pairs = append(pairs, pair{"tool_calls", tree{kind: 3, items: m.calls}.spell(s)})
	}
	return s.fixed(pairs)
}

func (c chat) spell(s speller) string {
	pairs := []pair{{"model", s.text(c.model)}, {"number", s.number(c.number)}}
	for _, name := range []string{"tools", "documents", "x", "chat_template_kwargs"} {
		if n, ok := c.extra[name]; ok {
			pairs = append(pairs, pair{name, n.spell(s)})
		}
	}
	var messages []string
	for _, m := range c.messages {
		messages = append(messages, m.spell(s))
	}
	return s.space() + s.fixed(append(pairs, pair{"messages", s.list(messages)})) + s.space()
}

func TestSpellingsOfOneChatShareACBR(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawChat(r)
		plain, free := c.spell(speller{plain: true}), c.spell(speller{t: r})
		if !json.Valid([]byte(free)) {
			r.Fatalf("the test makes invalid JSON: %s", free)
		}
		if a, b := cbrOf(t, Chat, plain), cbrOf(t, Chat, free); a != b {
			r.Fatalf("differ:\n%s\n%s\n%q\n%q", plain, free, a, b)
		}
	})
}

func TestAppendingMessagesKeepsEveryEarlierByte(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawChat(r)
		for _, ep := range []Endpoint{Chat, Messages, Responses} {
			body := func(c chat, s speller) string {
				text := c.spell(s)
				if ep == Responses {
					text = strings.Replace(text, `"messages"`, `"input"`, 1)
				}
				return text
			}
			longer := c
			longer.messages = append(c.messages[:len(c.messages):len(c.messages)], drawTurn(r))
			before, after := cbrOf(t, ep, body(c, speller{plain: true})), cbrOf(t, ep, body(longer, speller{plain: true}))
			if !strings.HasPrefix(after, before) || len(after) == len(before) {
				r.Fatalf("%s: not a proper prefix:\n%q\n%q", ep, before, after)
			}
		}
	})
}

// Two chats share a CBR only if they mean the same: decoding gives back what was
// encoded.
func TestCBRTellsChatsApart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := drawChat(r), drawChat(r)
		if rapid.Bool().Draw(r, "alike") {
			b = a
			b.number++
			if i := len(b.messages) - 1; i >= 0 {
				b.number = a.number
				b.messages = append([]turn(nil), a.messages...)
				b.messages[i].parts = append(b.messages[i].parts[:len(b.messages[i].parts):len(b.messages[i].parts)], drawText(r))
			}
		}
		x, y := cbrOf(t, Chat, a.spell(speller{plain: true})), cbrOf(t, Chat, b.spell(speller{plain: true}))
		same := a.spell(speller{plain: true}) == b.spell(speller{plain: true})
		if (x == y) != same {
			r.Fatalf("CBR same: %v, meaning same: %v:\n%q\n%q", x == y, same, x, y)
		}
		if _, err := decode([]byte(x)); err != nil {
			r.Fatalf("%v: %q", err, x)
		}
	})
}

func TestCanonicalNumbersKeepTheirValue(t *testing.T) {
	shape := rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?`)
	canonical := func(number string) string {
		value := field([]byte("\xFC"+cbrOf(t, Chat, `{"model":"m","x":`+number+`}`)[2:]+"\xFF"), "x")
		return string(value[1 : len(value)-1])
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b := shape.Draw(r, "a"), shape.Draw(r, "b")
		x, y := canonical(a), canonical(b)
		want, _ := new(big.Rat).SetString(a)
		if got, ok := new(big.Rat).SetString(x); !ok || got.Cmp(want) != 0 {
			r.Fatalf("%s became %s", a, x)
		}
		other, _ := new(big.Rat).SetString(b)
		if (x == y) != (want.Cmp(other) == 0) {
			r.Fatalf("%s and %s became %s and %s", a, b, x, y)
		}
	})
}

func TestTextIsKeptAndNothingElseIsTaken(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		raw := rapid.SliceOfN(rapid.SampledFrom([]byte("aaaaaaaaaaaaaaaaaaaa\"\\\x00\x1f\x20\x7f\x80\xbf\xc2\xe2\x82\xac\xff")), 0, 90).Draw(r, "raw")
		body := append(append([]byte(`{"model":"m","messages":[],"x":"`), raw...), `"}`...)
		var out bytes.Buffer
		_, err := New().Encode(Chat, body, nil, &out)
		plain := !bytes.ContainsAny(raw, "\"\\\x00\x1f") && utf8.Valid(raw)
		if plain && (err != nil || !bytes.Contains(out.Bytes(), append(append([]byte("x\xFE"), raw...), 0xFF))) {
			r.Fatalf("%q: %v, %q", raw, err, out.Bytes())
		}
		if err == nil && !json.Valid(body) {
			r.Fatalf("taken: %q", body)
		}
	})
}
