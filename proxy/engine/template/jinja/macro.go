package jinja

import "slices"

// parameters are those of a macro or of the body of a call block.
type parameters struct {
	names    []string
	defaults []expr // of the last names
}

func (p *parser) parameters() (ps parameters) {
	p.want(operator, "(")
	for !p.is(operator, ")") {
		ps.names = append(ps.names, p.wantKind(name, "a parameter").text)
		if p.skip(operator, "=") {
			ps.defaults = append(ps.defaults, p.expression())
		} else if len(ps.defaults) > 0 {
			p.fail("parameter without a default after one with a default")
		}
		if !p.skip(operator, ",") {
			break
		}
	}
	p.want(operator, ")")
	return ps
}

// bind sets the parameters in the frame of a call.
func (ps *parameters) bind(f *frame, a arguments) {
	given := a.positional()
	if len(given) > len(ps.names) {
		fail("%d arguments for %d parameters", len(given), len(ps.names))
	}
	for _, n := range a.names {
		if !slices.Contains(ps.names, n) {
			fail("no parameter is named %q", n)
		}
	}
	optional := len(ps.names) - len(ps.defaults)
	for i, n := range ps.names {
		v, ok := a.get(i, n)
		switch {
		case ok:
		case i >= optional:
			v = ps.defaults[i-optional].eval(f)
		default:
			v = Undefined{n}
		}
		f.set(n, v)
	}
}

func (p *parser) macro() stmt {
	called := p.wantKind(name, "the macro's name").text
	ps := p.parameters()
	done := p.survey.macro(called, ps.names)
	b := p.block("endmacro")
	done()
	return stmtFunc(func(f *frame) flow {
		f.set(called, &callable{called, func(_ *frame, a arguments) Value {
			in := f.inner()
			if caller, ok := a.named("caller"); ok && !slices.Contains(ps.names, "caller") {
				in.set("caller", caller)
				a.list, a.names = a.list[:len(a.list)-1], a.names[:len(a.names)-1]
			}
			ps.bind(in, a)
			return f.run.capture(func() { b.exec(in) })
		}})
		return onward
	})
}

// callBlock calls a macro that may call the body of the block by the name caller.
func (p *parser) callBlock() stmt {
	var ps parameters
	if p.is(operator, "(") {
		ps = p.parameters()
	}
	e, ok := p.expression().(*callExpr)
	if !ok {
		p.fail("call block without a call")
	}
	b := p.block("endcall")
	return stmtFunc(func(f *frame) flow {
		caller := &callable{"caller", func(_ *frame, a arguments) Value {
			in := f.inner()
			ps.bind(in, a)
			return f.run.capture(func() { b.exec(in) })
		}}
		a := e.args.eval(f)
		a.list = append(slices.Clip(a.list), caller)
		a.names = append(slices.Clip(a.names), "caller") // the last one: macros rely on it
		f.run.write(str(call(f, e.of.eval(f), a)))
		return onward
	})
}
