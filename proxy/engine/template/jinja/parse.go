package jinja

import (
	"strconv"
	"strings"
)

// parser reads tokens by recursive descent, in the structure of Jinja's own grammar.
type parser struct {
	tokens []token
	pos    int
	depth  int
	survey survey
}

// maxParse bounds expressions and blocks within one another.
const maxParse = 200

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != end {
		p.pos++
	}
	return t
}

func (p *parser) fail(format string, args ...any) { failAt(p.peek().line, format, args...) }

func (p *parser) is(k kind, s string) bool {
	t := p.peek()
	return t.kind == k && t.text == s
}

func (p *parser) skip(k kind, s string) bool {
	if p.is(k, s) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) want(k kind, s string) {
	if !p.skip(k, s) {
		p.fail("got %q, want %q", p.peek().text, s)
	}
}

func (p *parser) wantKind(k kind, what string) token {
	if p.peek().kind != k {
		p.fail("got %q, want %s", p.peek().text, what)
	}
	return p.next()
}

func (p *parser) operator(ops ...string) (string, bool) {
	if t := p.peek(); t.kind == operator {
		for _, op := range ops {
			if t.text == op {
				p.pos++
				return op, true
			}
		}
	}
	return "", false
}

// deeper guards what calls itself; the caller defers what it gives.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxParse {
		p.fail("nested more than %d deep", maxParse)
	}
	return func() { p.depth-- }
}

// expression reads one, with "if" and "else" unless plain.
func (p *parser) expression() expr {
	defer p.deeper()()
	e := p.or()
	for p.skip(name, "if") {
		yes, cond := e, p.or()
		no := expr(exprFunc(func(*frame) Value { return Undefined{"the value without an else"} }))
		if p.skip(name, "else") {
			no = p.expression()
		}
		e = exprFunc(func(f *frame) Value {
			if truth(cond.eval(f)) {
				return yes.eval(f)
			}
			return no.eval(f)
		})
	}
	return e
}

func (p *parser) or() expr {
	left := p.and()
	for p.skip(name, "or") {
		a, b := left, p.and()
		left = exprFunc(func(f *frame) Value {
			if v := a.eval(f); truth(v) {
				return v
			}
			return b.eval(f)
		})
	}
	return left
}

func (p *parser) and() expr {
	left := p.not()
	for p.skip(name, "and") {
		a, b := left, p.not()
		left = exprFunc(func(f *frame) Value {
			if v := a.eval(f); !truth(v) {
				return v
			}
			return b.eval(f)
		})
	}
	return left
}

func (p *parser) not() expr {
	if !p.skip(name, "not") {
		return p.compare()
	}
	defer p.deeper()()
	e := p.not()
	return exprFunc(func(f *frame) Value { return !truth(e.eval(f)) })
}

// comparison is an operator and what is at the right of it.
type comparison struct {
	holds func(a, b Value) bool
	right expr
}

func (p *parser) compare() expr {
	first := p.sum()
	var chain []comparison
	for {
		op, ok := p.operator("==", "!=", "<", "<=", ">", ">=")
		if !ok {
			switch {
			case p.skip(name, "in"):
				op = "in"
			case p.is(name, "not") && p.tokens[p.pos+1].kind == name && p.tokens[p.pos+1].text == "in":
				p.pos += 2
				op = "not in"
			default:
				return compared(first, chain)
			}
		}
		chain = append(chain, comparison{comparisons[op], p.sum()})
	}
}

func compared(first expr, chain []comparison) expr {
	if len(chain) == 0 {
		return first
	}
	return exprFunc(func(f *frame) Value {
		left := first.eval(f)
		for _, c := range chain {
			right := c.right.eval(f)
			if !c.holds(left, right) {
				return false
			}
			left = right
		}
		return true
	})
}

// binary reads operands of one precedence, grouped to the left.
func (p *parser) binary(operand func() expr, ops ...string) expr {
	left := operand()
	for {
		op, ok := p.operator(ops...)
		if !ok {
			return left
		}
		a, b, do := left, operand(), operators[op]
		left = exprFunc(func(f *frame) Value {
			f.run.step(1)
			return do(f, a.eval(f), b.eval(f))
		})
	}
}

func (p *parser) sum() expr     { return p.binary(p.concat, "+", "-") }
func (p *parser) product() expr { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr   { return p.binary(func() expr { return p.unary(true) }, "**") }

func (p *parser) concat() expr {
	parts := []expr{p.product()}
	for {
		if _, ok := p.operator("~"); !ok {
			break
		}
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return exprFunc(func(f *frame) Value {
		var b strings.Builder
		for _, part := range parts {
			b.WriteString(str(part.eval(f)))
		}
		f.run.grown(b.Len())
		return b.String()
	})
}

func (p *parser) unary(filters bool) expr {
	defer p.deeper()()
	var e expr
	if op, ok := p.operator("-", "+"); ok {
		of := p.unary(false)
		e = exprFunc(func(f *frame) Value { return signed(op, of.eval(f)) })
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

var constants = map[string]Value{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() expr {
	t := p.next()
	switch {
	case t.kind == name:
		if v, ok := constants[t.text]; ok {
			return &constExpr{v}
		}
		return &nameExpr{t.text}
	case t.kind == literal:
		s := t.text
		for p.peek().kind == literal {
			s += p.next().text
		}
		return &constExpr{s}
	case t.kind == integer || t.kind == float:
		return p.number(t)
	case t.kind == operator && t.text == "(":
		e := p.tuple(true, func() bool { return p.is(operator, ")") })
		p.want(operator, ")")
		return e
	case t.kind == operator && t.text == "[":
		return p.list()
	case t.kind == operator && t.text == "{":
		return p.dict()
	}
	failAt(t.line, "unexpected %q", t.text)
	return nil
}

func (p *parser) number(t token) expr {
	digits := strings.ReplaceAll(t.text, "_", "")
	if t.kind == float {
		v, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			p.fail("number %s: %v", t.text, err)
		}
		return &constExpr{v}
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		p.fail("number %s: %v", t.text, err)
	}
	return &constExpr{v}
}

// tuple reads one expression or, separated by commas, a tuple of them. An empty one
// needs parentheses.
func (p *parser) tuple(parentheses bool, ended func() bool) expr {
	var items []expr
	tuple := false
	for !ended() {
		items = append(items, p.expression())
		if !p.skip(operator, ",") {
			break
		}
		tuple = true
	}
	switch {
	case len(items) == 1 && !tuple:
		return items[0]
	case len(items) == 0 && !parentheses:
		p.fail("got %q, want an expression", p.peek().text)
	}
	return &tupleExpr{items}
}

func (p *parser) list() expr {
	var items []expr
	for !p.is(operator, "]") {
		items = append(items, p.expression())
		if !p.skip(operator, ",") {
			break
		}
	}
	p.want(operator, "]")
	return exprFunc(func(f *frame) Value { return NewList(evalAll(f, items)...) })
}

func (p *parser) dict() expr {
	var keys, values []expr
	for !p.is(operator, "}") {
		keys = append(keys, p.expression())
		p.want(operator, ":")
		values = append(values, p.expression())
		if !p.skip(operator, ",") {
			break
		}
	}
	p.want(operator, "}")
	return exprFunc(func(f *frame) Value {
		d := &Dict{}
		for i, k := range keys {
			d.set(k.eval(f), values[i].eval(f))
		}
		return d
	})
}
