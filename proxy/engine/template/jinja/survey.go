package jinja

import "slices"

// survey is what a template does with the messages, gathered while parsing.
type survey struct {
	assigns []assignment
	loops   []surveyedLoop
	macros  []surveyedMacro
	calls   []*callExpr
	within  []int // the macros around what is being parsed
}

type assignment struct {
	to target
	of expr
}

type surveyedLoop struct {
	*forLoop
	macros []int // around it
}

type surveyedMacro struct {
	name   string
	params []string
}

func (s *survey) loop(l *forLoop) {
	s.loops = append(s.loops, surveyedLoop{l, slices.Clone(s.within)})
}

// macro notes that a macro begins, and by what it gives that it ends.
func (s *survey) macro(name string, params []string) func() {
	s.within = append(s.within, len(s.macros))
	s.macros = append(s.macros, surveyedMacro{name, params})
	return func() { s.within = s.within[:len(s.within)-1] }
}

// iteratesContent is whether some loop goes over the content of a message, by the
// rules that vLLM has for it: such a template gets content as a list of parts.
func (s *survey) iteratesContent() bool {
	messages := s.messageNames()
	holdsContent := func(e expr) bool {
		return slices.ContainsFunc(messages, func(m string) bool { return accesses(e, m, "content") })
	}
	bound := s.contentParameters(holdsContent)
	return slices.ContainsFunc(s.loops, func(l surveyedLoop) bool {
		if holdsContent(l.over) {
			return true
		}
		over, ok := l.over.(*nameExpr)
		if !ok {
			return false
		}
		if len(l.macros) == 0 {
			return over.name == "content"
		}
		return slices.ContainsFunc(l.macros, func(m int) bool { return slices.Contains(bound[m], over.name) })
	})
}

// messageNames are the names that loops over the messages give to one.
func (s *survey) messageNames() (names []string) {
	lists := []string{"messages"}
	for i := 0; i < len(lists); i++ {
		for _, a := range s.assigns {
			if accesses(a.of, lists[i], "") && !slices.Contains(lists, a.to.names[0]) {
				lists = append(lists, a.to.names[0])
			}
		}
	}
	for _, l := range s.loops {
		if slices.ContainsFunc(lists, func(of string) bool { return accesses(l.over, of, "") }) {
			names = append(names, l.to.names[0])
		}
	}
	return names
}

// contentParameters are the parameters of each macro that some call gives content.
func (s *survey) contentParameters(holdsContent func(expr) bool) [][]string {
	bound := make([][]string, len(s.macros))
	for i, m := range s.macros {
		for _, c := range s.calls {
			if of, ok := c.of.(*nameExpr); !ok || of.name != m.name {
				continue
			}
			positional := len(c.args.list) - len(c.args.names)
			for k, arg := range c.args.list {
				if !holdsContent(arg) {
					continue
				}
				switch {
				case k >= positional:
					bound[i] = append(bound[i], c.args.names[k-positional])
				case k < len(m.params):
					bound[i] = append(bound[i], m.params[k])
				}
			}
		}
	}
	return bound
}

// accesses is whether an expression is a name, or its member of that key, perhaps
// filtered, tested or sliced.
func accesses(e expr, of, key string) bool {
	switch e := e.(type) {
	case *filterExpr:
		return accesses(e.of, of, key)
	case *testExpr:
		return accesses(e.of, of, key)
	case *sliceExpr:
		return accesses(e.of, of, key)
	case *nameExpr:
		return key == "" && e.name == of
	case *attrExpr:
		return key != "" && e.name == key && accesses(e.of, of, "") && isName(e.of)
	case *itemExpr:
		k, ok := e.key.(*constExpr)
		return key != "" && ok && k.value == Value(key) && isName(e.of) && accesses(e.of, of, "")
	}
	return false
}

func isName(e expr) bool { _, ok := e.(*nameExpr); return ok }
