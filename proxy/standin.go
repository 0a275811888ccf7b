package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvca/router"
	"kvca/state/cbr"
)

// standIns is what a request knows of models that stand in for its own.
type standIns struct {
	model     string   // the request's own, "" where it goes to that
	unspliced []byte   // the body before the model's name was spliced in
	failed    []string // models whose backends have all failed this request
	excluded  bool     // the request goes on from what its own model's backend keeps
}

// resolveModel is resolve for whatever a body calls its model: an engine's own
// endpoint may name none, or leave a tag out, and another model may have to stand in.
func (x *exchange) resolveModel(name string) (string, *cbr.Rules, error) {
	if name == "" {
		only, err := x.onlyModel()
		if err != nil {
			return "", nil, err
		}
		name = only
	}
	if x.endpoint.style == ollamaStyle {
		name = x.tagged(name)
	}
	if other := x.standIn(x.cfg.real(name)); other != "" {
		name = other
	}
	return x.resolve(name)
}

// standIn is the first model of those that may stand in for one which no backend can
// take requests for now, "" where the model itself is to be tried.
func (x *exchange) standIn(model string) string {
	x.instead.model = ""
	others := x.cfg.Fallbacks[model]
	if len(others) == 0 || x.instead.excluded || !x.p.pool.Ready() || !x.permitted(model) || x.canTake(model) {
		return ""
	}
	for _, other := range others {
		if x.permitted(other) && x.canTake(other) {
			x.instead.model = model
			return other
		}
	}
	return ""
}

// canTake is whether a backend of the model is fit for the request.
func (x *exchange) canTake(model string) bool {
	if slices.Contains(x.instead.failed, model) {
		return false
	}
	members, _ := x.p.pool.Model(model)
	return slices.ContainsFunc(members, func(b *router.Backend) bool { return b.Standing() == router.Available })
}

// stepDown turns to the next model once no backend of this one is left to try.
// Nothing has been sent to the client, and the last attempt is still open.
func (x *exchange) stepDown(lost bool) bool {
	model := x.name.Model
	own := model
	if x.instead.model != "" {
		own = x.instead.model
	}
	if len(x.cfg.Fallbacks[own]) == 0 || x.want.Pin != nil || x.ticket == nil {
		return false
	}
	x.instead.failed = append(x.instead.failed, model)
	if !slices.ContainsFunc(x.cfg.Fallbacks[own], func(m string) bool { return x.permitted(m) && x.canTake(m) }) {
		return false
	}
	if !x.p.retries.allow(time.Now(), lost) {
		x.p.metrics.retriesDenied.Inc()
		return false
	}
	x.print = x.fingerprint()
	x.ticket.Close() // the chain that it has is made anew
	x.dismiss()
	x.returnNamer()
	if x.instead.unspliced != nil {
		x.body, x.instead.unspliced = x.instead.unspliced, nil
	}
	detail := x.want.Detail
	if x.identify() != nil || x.admitAnew() != nil {
		return false
	}
	x.want.Detail, x.print = detail, 0
	x.p.metrics.retries.Inc()
	return true
}

// tellModel says which model answers, where it is not the one that was asked for.
func (x *exchange) tellModel() {
	if x.instead.model == "" {
		return
	}
	x.w.Header()["X-Kvca-Model"] = []string{x.name.Model}
	x.p.metrics.standIns.WithLabelValues(x.instead.model).Inc()
}

// fallbackFaults are the faults of Config.Fallbacks.
func (c *Config) fallbackFaults() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for model, others := range c.Fallbacks {
		if real, alias := c.Aliases[model]; alias || model == "" {
			fault("fallback of %q: want a model's own name, not an alias (of %q)", model, real)
		}
		if len(others) == 0 {
			fault("fallback of %q: names no model", model)
		}
		for i, other := range others {
			_, alias := c.Aliases[other]
			if strings.TrimSpace(other) == "" || other == model || alias || slices.Contains(others[:i], other) {
				fault("fallback of %q: %q is empty, an alias, the model itself, or named twice: want other models' own names", model, other)
			}
		}
	}
	return errors.Join(faults...)
}
