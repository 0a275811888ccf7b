package tenant

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// limits reads limits. Zero means none in Limits, and looks like nothing at all in a
// file: so it is refused.
func (r *reading) limits(n ast.Node, p place) Limits {
	var l Limits
	before := len(r.faults)
	var burst place
	r.mapping(n, p, map[string]taker{
		"requests_per_second": r.rate(&l.RequestsPerSecond),
		"tokens_per_second":   r.rate(&l.TokensPerSecond),
		"concurrent":          r.count(&l.Concurrent, 1, mostConcurrent),
		"burst": func(n ast.Node, p place) {
			burst = p
			r.duration(&l.Burst, leastBurst, mostBurst)(n, p)
		},
	})
	rated := l.RequestsPerSecond > 0 || l.TokensPerSecond > 0
	if burst.at != "" && !rated && len(r.faults) == before {
		r.fault(burst, "has nothing to save up: want it beside requests_per_second or tokens_per_second")
	}
	if rated && l.Burst == 0 {
		l.Burst = defaultBurst
	}
	return l
}

func (r *reading) rate(into *float64) taker {
	take := r.number(into, leastPerSecond, mostPerSecond)
	return func(n ast.Node, p place) {
		if scalar, ok := n.(ast.ScalarNode); ok {
			if v, err := strconv.ParseFloat(scalar.GetToken().Value, 64); err == nil && v == 0 {
				r.fault(p, "0 would be no limit: leave it out for none; a tenant that shall send nothing gets no keys")
				return
			}
		}
		take(n, p)
	}
}

func (r *reading) perModel(t *Tenant, n ast.Node, p place) {
	t.PerModel = make(map[string]Limits)
	r.fields(n, p, nil, func(model string, n ast.Node, p place) {
		if model == "" || len(model) > maxModelBytes || strings.HasSuffix(model, "*") {
			r.fault(p, "want the name of one model, without a *")
		}
		if len(t.PerModel) < maxModels {
			t.PerModel[model] = r.limits(n, p)
		}
	})
}

// checkPerModel notes limits that could never hold.
func (r *reading) checkPerModel(t *Tenant, p place) {
	for _, model := range slices.Sorted(maps.Keys(t.PerModel)) {
		if !t.Allows(model) {
			r.fault(p, "per_model: %.80q is none of the tenant's models: want it among models, or not here", model)
		}
	}
}
