package proxy

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"kvca/router"
	"kvca/state/cbr"
)

// identify names the request: its model, its chain, and the backends that may
// take it.
func (x *exchange) identify() error {
	var err error
	switch e := x.endpoint; {
	case e.ids:
		err = x.identifyStored()
	case e.needsModel || len(x.body) > 0 && x.isJSON():
		err = x.identifyBody()
	default:
		err = x.identifyOnly()
	}
	x.named = time.Now()
	return err
}

// identifyBody reads the body. Endpoints that can do without a model fall back
// on the only one there is.
func (x *exchange) identifyBody() error {
	if len(x.body) == 0 {
		return badRequest("invalid_json", "The request has no body: a JSON object was expected.", "")
	}
	n := x.p.namers.Get().(*namer)
	x.namer, n.x = n, x
	n.hasher.Reset(x.cfg.Key, x.p.router.BlockSize())
	name, err := n.encoder.Encode(x.endpoint.cbr, x.body, n.resolver, &n.hasher)
	if err != nil {
		if fault, ok := err.(*cbr.Error); ok && fault.Code == "missing_model" && !x.endpoint.needsModel {
			return x.identifyOnly()
		}
		return err
	}
	x.name = name
	x.members, _ = x.p.pool.Model(name.Model)
	x.want = router.Request{
		Model: name.Model, Phase: name.Phase, Chain: n.hasher.Hashes(), Marks: n.hasher.Marks(), Bytes: name.Bytes,
		SkipsCache: name.SkipsCache,
	}
	if x.endpoint.cbr == cbr.Other && x.endpoint.computes {
		x.want.Bytes = int64(len(x.body))
	}
	if name.PreviousResponseID != "" {
		x.want.Pin = x.p.keeper(name.PreviousResponseID)
	}
	x.rewriteModel()
	return nil
}

// rewriteModel splices the model's own name in for a configured alias: the one
// rewrite there is, and it touches no other byte.
func (x *exchange) rewriteModel() {
	if x.name.ClientModel == x.name.Model {
		return
	}
	quoted, _ := json.Marshal(x.name.Model) // a string: can't fail
	span := x.name.ModelSpan
	body := make([]byte, 0, len(x.body)+len(quoted))
	body = append(body, x.body[:span[0]]...)
	body = append(body, quoted...)
	x.body = append(body, x.body[span[1]:]...)
}

// identifyOnly takes a request that names no model: fine while there is just one
// to take it.
func (x *exchange) identifyOnly() error {
	models := slices.DeleteFunc(x.p.pool.Models(), func(name string) bool { return !x.permitted(name) })
	switch {
	case len(models) == 1:
		x.name.Model = models[0]
		x.members, _ = x.p.pool.Model(models[0])
	case len(models) == 0:
		return unavailable("no_backend", "No backend serves a model yet. Try again shortly.")
	default:
		return badRequest("missing_model", fmt.Sprintf("The request names no model, and %d are served here: set \"model\" to one of %s.", len(models), strings.Join(models[:min(len(models), 20)], ", ")), "model")
	}
	x.want = router.Request{Model: x.name.Model}
	if x.endpoint.computes {
		x.want.Bytes = int64(len(x.body))
	}
	return nil
}

// identifyStored finds the backend that keeps a response.
func (x *exchange) identifyStored() error {
	id, _, _ := strings.Cut(x.r.URL.Path[len(responsesPrefix):], "/")
	b := x.p.keeper(id)
	if b == nil {
		return &apiError{status: http.StatusNotFound, code: "response_not_found", param: "response_id", message: "No backend is known to keep the response " + quoteShort(id) + ": it was made elsewhere, or too long ago."}
	}
	x.members = []*router.Backend{b}
	x.want = router.Request{Pin: b}
	return nil
}

// isJSON is whether the body claims to be JSON, or claims nothing.
func (x *exchange) isJSON() bool {
	t := x.r.Header.Get("Content-Type")
	if t == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(t)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
