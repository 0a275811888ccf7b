package jinja

// loop is the variable loop.
type loop struct {
	items []Value
	at    int
	depth int
	again func(f *frame, v Value, depth int) // runs the loop over other items, nil unless recursive
	last  Value                              // of changed()
	seen  bool
}

// forLoop is a for statement.
type forLoop struct {
	to        target
	over      expr
	where     expr // nil: all
	body      body
	otherwise body
	recursive bool
}

func (p *parser) loop() stmt {
	l := &forLoop{to: p.target(false)}
	p.want(name, "in")
	l.over = p.or()
	if p.skip(operator, ",") {
		items := []expr{l.over}
		for p.peek().kind != blockEnd {
			items = append(items, p.or())
			if !p.skip(operator, ",") {
				break
			}
		}
		l.over = &tupleExpr{items}
	}
	if p.skip(name, "if") {
		l.where = p.expression()
	}
	l.recursive = p.skip(name, "recursive")
	p.survey.loop(l)
	p.wantKind(blockEnd, "%}")
	l.body = p.body("else", "endfor")
	if p.next().text == "else" {
		p.wantKind(blockEnd, "%}")
		l.otherwise = p.body("endfor")
		p.pos++
	}
	p.wantKind(blockEnd, "%}")
	return l
}

func (l *forLoop) exec(f *frame) flow {
	l.run(f, l.over.eval(f), 0)
	return onward
}

func (l *forLoop) run(f *frame, over Value, depth int) {
	items := iterate(f, over)
	if l.where != nil {
		items = l.chosen(f, items)
	}
	if len(items) == 0 {
		l.otherwise.exec(f.inner())
		return
	}
	state := &loop{items: items, depth: depth}
	if l.recursive {
		state.again = func(in *frame, v Value, depth int) { l.run(f, v, depth) }
	}
	for i, v := range items {
		f.run.step(1)
		state.at = i
		in := f.inner()
		in.set("loop", state)
		l.to.assign(in, v)
		if l.body.exec(in) == breakLoop {
			return
		}
	}
}

func (l *forLoop) chosen(f *frame, items []Value) (some []Value) {
	for _, v := range items {
		f.run.step(1)
		in := f.inner()
		l.to.assign(in, v)
		if truth(l.where.eval(in)) {
			some = append(some, v)
		}
	}
	return some
}

func (l *loop) recurse(f *frame, a arguments) Value {
	if l.again == nil {
		fail("the loop is not recursive")
	}
	f.run.enter()
	defer f.run.leave()
	over := a.must(0, "iterable")
	return f.run.capture(func() { l.again(f, over, l.depth+1) })
}

// member is loop.name.
func (l *loop) member(of string) (Value, bool) {
	at, n := int64(l.at), int64(len(l.items))
	switch of {
	case "index":
		return at + 1, true
	case "index0":
		return at, true
	case "revindex":
		return n - at, true
	case "revindex0":
		return n - at - 1, true
	case "first":
		return at == 0, true
	case "last":
		return at == n-1, true
	case "length":
		return n, true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		return l.near(-1), true
	case "nextitem":
		return l.near(1), true
	case "cycle":
		return &callable{of, l.cycle}, true
	case "changed":
		return &callable{of, l.changed}, true
	}
	return nil, false
}

func (l *loop) near(by int) Value {
	if i := l.at + by; i >= 0 && i < len(l.items) {
		return l.items[i]
	}
	return Undefined{"the item beside the loop"}
}

func (l *loop) cycle(_ *frame, a arguments) Value {
	if len(a.list) == 0 {
		fail("cycle without items")
	}
	return a.list[l.at%len(a.list)]
}

func (l *loop) changed(_ *frame, a arguments) Value {
	now := Value(newTuple(a.list...))
	same := l.seen && equal(l.last, now)
	l.last, l.seen = now, true
	return !same
}
