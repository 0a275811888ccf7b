package jinja

import "slices"

// body reads statements up to a block of one of these names, which comes next then.
func (p *parser) body(ends ...string) body {
	defer p.deeper()()
	var b body
	for {
		switch t := p.peek(); t.kind {
		case end:
			if len(ends) > 0 {
				p.fail("the template ends, want %q", ends[len(ends)-1])
			}
			return b
		case text:
			p.pos++
			b = append(b, stmtFunc(func(f *frame) flow { f.run.write(t.text); return onward }))
		case printBegin:
			p.pos++
			e := p.tuple(false, func() bool { return p.peek().kind == printEnd })
			p.wantKind(printEnd, "}}")
			b = append(b, stmtFunc(func(f *frame) flow { f.run.write(str(e.eval(f))); return onward }))
		default:
			p.pos++
			t := p.wantKind(name, "a statement")
			if slices.Contains(ends, t.text) {
				p.pos--
				return b
			}
			b = append(b, p.statement(t))
		}
	}
}

// block reads the rest of a block's tag, what is in the block and its end.
func (p *parser) block(ends string) body {
	p.wantKind(blockEnd, "%}")
	b := p.body(ends)
	p.pos++
	p.wantKind(blockEnd, "%}")
	return b
}

func (p *parser) statement(t token) stmt {
	switch t.text {
	case "if":
		return p.conditional()
	case "for":
		return p.loop()
	case "set":
		return p.set()
	case "macro":
		return p.macro()
	case "call":
		return p.callBlock()
	case "filter":
		return p.filterBlock()
	case "generation":
		b := p.block("endgeneration")
		return stmtFunc(func(f *frame) flow { return b.exec(f.inner()) })
	case "break", "continue":
		p.wantKind(blockEnd, "%}")
		how := breakLoop
		if t.text == "continue" {
			how = continueLoop
		}
		return stmtFunc(func(*frame) flow { return how })
	}
	failAt(t.line, "statement %q is not supported", t.text)
	return nil
}

func (p *parser) conditional() stmt {
	type branch struct {
		cond expr
		body body
	}
	var branches []branch
	var otherwise body
	for {
		cond := p.expression()
		p.wantKind(blockEnd, "%}")
		branches = append(branches, branch{cond, p.body("elif", "else", "endif")})
		t := p.next()
		if t.text == "elif" {
			continue
		}
		if t.text == "else" {
			p.wantKind(blockEnd, "%}")
			otherwise = p.body("endif")
			p.pos++
		}
		p.wantKind(blockEnd, "%}")
		break
	}
	return stmtFunc(func(f *frame) flow {
		for _, b := range branches {
			if truth(b.cond.eval(f)) {
				return b.body.exec(f)
			}
		}
		return otherwise.exec(f)
	})
}

// target is what is assigned to: names, or a member of a namespace.
type target struct {
	names  []string
	tuple  bool
	member string
}

func (p *parser) target(member bool) target {
	t := target{names: []string{p.wantKind(name, "a name").text}}
	if member && p.skip(operator, ".") {
		t.member = p.wantKind(name, "a name").text
		return t
	}
	for p.skip(operator, ",") {
		t.tuple = true
		if p.peek().kind != name || p.is(name, "in") {
			break
		}
		t.names = append(t.names, p.next().text)
	}
	return t
}

func (t *target) assign(f *frame, v Value) {
	if t.member != "" {
		ns, ok := f.get(t.names[0]).(*namespace)
		if !ok {
			fail("cannot set a member of %q: no namespace", t.names[0])
		}
		ns.Set(t.member, v)
		return
	}
	if !t.tuple {
		f.set(t.names[0], v)
		return
	}
	items := iterate(f, v)
	if len(items) != len(t.names) {
		fail("%d values for %d names", len(items), len(t.names))
	}
	for i, n := range t.names {
		f.set(n, items[i])
	}
}

func (p *parser) set() stmt {
	to := p.target(true)
	if !p.skip(operator, "=") {
		return p.setBlock(to)
	}
	e := p.tuple(false, func() bool { return p.peek().kind == blockEnd })
	p.wantKind(blockEnd, "%}")
	p.survey.assigns = append(p.survey.assigns, assignment{to, e})
	return stmtFunc(func(f *frame) flow { to.assign(f, e.eval(f)); return onward })
}

func (p *parser) setBlock(to target) stmt {
	e := p.filters(exprFunc(func(f *frame) Value { return f.get(bodyName) }))
	b := p.block("endset")
	return stmtFunc(func(f *frame) flow {
		to.assign(f, filtered(f, b, e))
		return onward
	})
}

// bodyName holds the body of a block while its filters run; no template can name it.
const bodyName = "\x00body"

// filtered is what filters make of a body.
func filtered(f *frame, b body, e expr) Value {
	in := f.inner()
	s := f.run.capture(func() { b.exec(in) })
	in.set(bodyName, s)
	return e.eval(in)
}

func (p *parser) filterBlock() stmt {
	e := p.filters(p.filter(exprFunc(func(f *frame) Value { return f.get(bodyName) })))
	b := p.block("endfilter")
	return stmtFunc(func(f *frame) flow {
		f.run.write(str(filtered(f, b, e)))
		return onward
	})
}
