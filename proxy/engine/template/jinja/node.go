package jinja

// expr is an expression.
type expr interface{ eval(f *frame) Value }

// exprFunc is an expression of which nothing else has to be known.
type exprFunc func(f *frame) Value

func (e exprFunc) eval(f *frame) Value { return e(f) }

// The expressions that Survey looks at, and those that assignment does.
type (
	nameExpr  struct{ name string }
	constExpr struct{ value Value }
	attrExpr  struct {
		of   expr
		name string
	}
	itemExpr  struct{ of, key expr }
	sliceExpr struct{ of, start, stop, step expr }
	callExpr  struct {
		of   expr
		args argumentExprs
	}
	filterExpr struct {
		of   expr // nil: the body of a filter block
		name string
		do   filter
		args argumentExprs
	}
	testExpr struct {
		of   expr
		do   test
		args argumentExprs
	}
	tupleExpr struct{ items []expr }
)

type argumentExprs struct {
	list  []expr
	names []string
}

func (e *nameExpr) eval(f *frame) Value  { return f.get(e.name) }
func (e *constExpr) eval(*frame) Value   { return e.value }
func (e *attrExpr) eval(f *frame) Value  { return attribute(e.of.eval(f), e.name) }
func (e *itemExpr) eval(f *frame) Value  { return item(e.of.eval(f), e.key.eval(f)) }
func (e *tupleExpr) eval(f *frame) Value { return newTuple(evalAll(f, e.items)...) }

func (e *sliceExpr) eval(f *frame) Value {
	bound := func(b expr) Value {
		if b == nil {
			return nil
		}
		return b.eval(f)
	}
	return slice(e.of.eval(f), bound(e.start), bound(e.stop), bound(e.step))
}

func (e *callExpr) eval(f *frame) Value {
	return call(f, e.of.eval(f), e.args.eval(f))
}

func (e *filterExpr) eval(f *frame) Value {
	f.run.step(1)
	return e.do(f, e.of.eval(f), e.args.eval(f))
}

func (e *testExpr) eval(f *frame) Value {
	return e.do(f, e.of.eval(f), e.args.eval(f))
}

func (a *argumentExprs) eval(f *frame) arguments {
	if len(a.list) == 0 {
		return arguments{}
	}
	return arguments{evalAll(f, a.list), a.names}
}

func evalAll(f *frame, list []expr) []Value {
	values := make([]Value, len(list))
	for i, e := range list {
		values[i] = e.eval(f)
	}
	return values
}

// call calls what can be called.
func call(f *frame, of Value, a arguments) Value {
	f.run.step(1)
	switch of := of.(type) {
	case *callable:
		f.run.enter()
		defer f.run.leave()
		return of.call(f, a)
	case *loop:
		return of.recurse(f, a)
	case Undefined:
		fail("%q is undefined", of.name)
	}
	fail("a %s is no function", typeName(of))
	return nil
}

// stmt is a statement.
type stmt interface{ exec(f *frame) flow }

type stmtFunc func(f *frame) flow

func (s stmtFunc) exec(f *frame) flow { return s(f) }

// flow says how to go on after a statement.
type flow uint8

const (
	onward flow = iota
	breakLoop
	continueLoop
)

type body []stmt

func (b body) exec(f *frame) flow {
	for _, s := range b {
		if how := s.exec(f); how != onward {
			return how
		}
	}
	return onward
}
