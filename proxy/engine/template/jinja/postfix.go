package jinja

// postfix reads members, subscripts and calls behind an expression.
func (p *parser) postfix(e expr) expr {
	for {
		switch op, _ := p.operator(".", "[", "("); op {
		case ".":
			e = p.member(e)
		case "[":
			e = p.subscript(e)
		case "(":
			e = p.called(e)
		default:
			return e
		}
	}
}

func (p *parser) member(of expr) expr {
	t := p.next()
	switch t.kind {
	case name:
		return &attrExpr{of, t.text}
	case integer:
		return &itemExpr{of, p.number(t)}
	}
	failAt(t.line, "got %q after a point, want a name", t.text)
	return nil
}

func (p *parser) subscript(of expr) expr {
	var bounds [3]expr
	n := 0
	for {
		if !p.is(operator, ":") && !p.is(operator, "]") {
			bounds[n] = p.expression()
		}
		if n == 2 || !p.skip(operator, ":") {
			break
		}
		n++
	}
	p.want(operator, "]")
	if n > 0 {
		return &sliceExpr{of, bounds[0], bounds[1], bounds[2]}
	}
	if bounds[0] == nil {
		p.fail("empty subscript")
	}
	return &itemExpr{of, bounds[0]}
}

func (p *parser) called(of expr) expr {
	e := &callExpr{of, p.arguments()}
	p.survey.calls = append(p.survey.calls, e)
	return e
}

// arguments reads those of a call, behind its parenthesis.
func (p *parser) arguments() (a argumentExprs) {
	for !p.is(operator, ")") {
		if p.is(operator, "*") || p.is(operator, "**") {
			p.fail("arguments with * are not supported")
		}
		next := p.tokens[min(p.pos+1, len(p.tokens)-1)]
		switch {
		case p.peek().kind == name && next.kind == operator && next.text == "=":
			a.names = append(a.names, p.next().text)
			p.pos++
		case len(a.names) > 0:
			p.fail("argument without a name after one with a name")
		}
		a.list = append(a.list, p.expression())
		if !p.skip(operator, ",") {
			break
		}
	}
	p.want(operator, ")")
	return a
}

// filters reads filters and tests behind an expression: they bind alike.
func (p *parser) filters(e expr) expr {
	for {
		switch {
		case p.skip(operator, "|"):
			e = p.filter(e)
		case p.skip(name, "is"):
			e = p.test(e)
		case p.skip(operator, "("):
			e = p.called(e)
		default:
			return e
		}
	}
}

func (p *parser) filter(of expr) expr {
	t := p.wantKind(name, "the name of a filter")
	do, ok := filters[t.text]
	if !ok { // it fails where it is used, since templates may ask before
		do = func(*frame, Value, arguments) Value { failAt(t.line, "filter %q is not supported", t.text); return nil }
	}
	e := &filterExpr{of: of, name: t.text, do: do}
	if p.skip(operator, "(") {
		e.args = p.arguments()
	}
	return e
}

func (p *parser) test(of expr) expr {
	negated := p.skip(name, "not")
	t := p.wantKind(name, "the name of a test")
	do, ok := tests[t.text]
	if !ok {
		do = func(*frame, Value, arguments) Value { failAt(t.line, "test %q is not supported", t.text); return nil }
	}
	e := &testExpr{of: of, do: do}
	if p.skip(operator, "(") {
		e.args = p.arguments()
	} else if p.beginsArgument() {
		e.args.list = []expr{p.postfix(p.primary())}
	}
	if !negated {
		return e
	}
	return exprFunc(func(f *frame) Value { return !truth(e.eval(f)) })
}

// beginsArgument is whether the argument of a test comes, which needs no parentheses.
func (p *parser) beginsArgument() bool {
	switch t := p.peek(); t.kind {
	case name:
		switch t.text {
		case "else", "or", "and", "if", "in", "not", "is", "recursive":
			return false
		}
		return true
	case literal, integer, float:
		return true
	case operator:
		return t.text == "[" || t.text == "{"
	}
	return false
}
