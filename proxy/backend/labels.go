package backend

import (
	"bytes"
	"slices"
)

// eachLabel calls visit for each label of a sample and returns what follows
// them: nil if the labels can't be read. Without a visitor it only skips them.
func eachLabel(rest []byte, visit func(name, value []byte)) []byte {
	if len(rest) == 0 || rest[0] != '{' {
		return rest
	}
	rest = rest[1:]
	for {
		rest = bytes.TrimLeft(rest, ", \t")
		if len(rest) > 0 && rest[0] == '}' {
			return rest[1:]
		}
		eq := bytes.IndexByte(rest, '=')
		if eq < 0 {
			return nil
		}
		name := bytes.TrimRight(rest[:eq], " \t")
		value, after, ok := quoted(bytes.TrimLeft(rest[eq+1:], " \t"))
		if !ok {
			return nil
		}
		if visit != nil {
			visit(name, value)
		}
		rest = after
	}
}

// quoted splits a quoted string from what follows it. It allocates only where
// there is an escape to undo.
func quoted(text []byte) (value, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	text = text[1:]
	escaped := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			if escaped {
				return unescape(text[:i]), text[i+1:], true
			}
			return text[:i], text[i+1:], true
		}
	}
	return nil, nil, false
}

// unescape undoes the three escapes of the text format.
func unescape(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		switch text[i] {
		case 'n':
			out = append(out, '\n')
		case '\\', '"':
			out = append(out, text[i])
		default:
			out = append(out, '\\', text[i])
		}
	}
	return out
}

// distinct sorts names and drops repeated ones.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
